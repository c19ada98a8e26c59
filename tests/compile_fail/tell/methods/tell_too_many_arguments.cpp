// More arguments than the method has parameters.
// expect: troupe: tell: these arguments do not fit the method's parameters
#include <troupe/troupe.hpp>

struct Counter {
  void add(int k) { n += k; }
  int n = 0;
};

void use(troupe::ref<Counter> counter) {
#ifdef CONTROL
  counter.tell<&Counter::add>(5);
#else
  counter.tell<&Counter::add>(5, 6);
#endif
}
