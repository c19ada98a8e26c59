// A method that is given as a value cannot be checked: it must be a template argument.
// expect: troupe: tell: name the method as a template argument
#include <troupe/troupe.hpp>

struct Counter {
  void step() { ++n; }
  int n = 0;
};

void use(troupe::ref<Counter> counter) {
#ifdef CONTROL
  counter.tell<&Counter::step>();
#else
  counter.tell(&Counter::step);
#endif
}
