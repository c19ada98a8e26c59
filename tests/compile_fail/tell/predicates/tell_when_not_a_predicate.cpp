// The predicate could change the actor.
// expect: troupe: tell_when: the predicate must be callable with (const T&), as a constant, and give a bool
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
  void add(int k) { n += k; }
};

void use(troupe::ref<Counter> counter) {
#ifdef CONTROL
  counter.tell_when<&Counter::add>([](const Counter& self) { return self.n == 0; }, 1);
#else
  counter.tell_when<&Counter::add>([](Counter& self) { return ++self.n == 0; }, 1);
#endif
}
