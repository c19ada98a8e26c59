// A buffer would be passed as a pointer, and may be gone when the actor is constructed. A literal
// is passed as a string.
// expect: troupe: spawn: an argument is a pointer, a view
// expect: troupe::unchecked
#include <string>
#include <troupe/troupe.hpp>

struct Database {
  explicit Database(std::string file) : name(std::move(file)) {}
  std::string name;
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Database>(troupe::pinned("db"), "notes");
#else
  char file[] = "notes";
  rt.spawn<Database>(troupe::pinned("db"), file);
#endif
}
