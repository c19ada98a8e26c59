// A default argument is no part of a method's type.
// expect: troupe: tell: the method has more parameters: default arguments are not part of its type
#include <troupe/troupe.hpp>

struct Counter {
  void add(int k, int times = 1) { n += k * times; }
  int n = 0;
};

void use(troupe::ref<Counter> to) {
#ifdef CONTROL
  to.tell<&Counter::add>(5, 1);
#else
  to.tell<&Counter::add>(5);
#endif
}
