// A copy of a pointer is not deep.
// expect: troupe: promote: a deep copy of T cannot be made
#include <troupe/troupe.hpp>

struct Node {
  const char* name;
};

void use(troupe::context& work) {
#ifdef CONTROL
  static_cast<void>(troupe::promote(work.make<int>(1)));
#else
  static_cast<void>(troupe::promote(work.make<Node>("a")));
#endif
}
