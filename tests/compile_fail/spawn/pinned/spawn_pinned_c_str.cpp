// The string to which this pointer refers may be gone when the actor is constructed.
// expect: troupe: spawn: an argument is a pointer, a view
#include <string>
#include <troupe/troupe.hpp>

struct Database {
  explicit Database(const char* file) : name(file) {}
  explicit Database(const std::string& file) : name(file) {}
  std::string name;
};

void use(troupe::runtime& rt, const std::string& file) {
#ifdef CONTROL
  rt.spawn<Database>(troupe::pinned("db"), file);
#else
  rt.spawn<Database>(troupe::pinned("db"), file.c_str());
#endif
}
