// The memory of such a container goes with its context, while other threads may still share it.
// expect: troupe: guarded: T is or has a pointer, a view or a std::pmr allocator
#include <memory_resource>
#include <string>
#include <troupe/troupe.hpp>

void use() {
#ifdef CONTROL
  troupe::guarded<troupe::persisted<std::pmr::string>> name;
#else
  troupe::guarded<std::pmr::string> name;
#endif
  static_cast<void>(name);
}
