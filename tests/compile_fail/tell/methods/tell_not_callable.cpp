// A callable that cannot be called with the actor.
// expect: troupe: tell: the callable must be callable with (T&)
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
};

void use(troupe::ref<Counter> counter) {
#ifdef CONTROL
  counter.tell([](Counter& self) { ++self.n; });
#else
  counter.tell([](int) {});
#endif
}
