// A guard of a pointer does not guard the object, whose memory may be a context's.
// expect: troupe: guarded: T is or has a pointer, a view or a std::pmr allocator
#include <troupe/troupe.hpp>
#include <vector>

void use() {
#ifdef CONTROL
  troupe::guarded<std::vector<int>> numbers;
#else
  troupe::guarded<std::vector<int*>> numbers;
#endif
  static_cast<void>(numbers);
}
