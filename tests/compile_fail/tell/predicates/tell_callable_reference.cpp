// The callable is a reference to one that the sender keeps.
// expect: troupe: tell: the callable is or holds a pointer, a view, an iterator, a lock or a reference wrapper
#include <functional>
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
};

void use(troupe::ref<Counter> to) {
  auto add = [](Counter& self) { ++self.n; };
#ifdef CONTROL
  to.tell(add);
#else
  to.tell(std::ref(add));
#endif
}
