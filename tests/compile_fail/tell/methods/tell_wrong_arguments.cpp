// The arguments do not convert to the method's parameters. The message names the method.
// expect: troupe: tell: these arguments do not fit the method's parameters
// expect: Counter::add
#include <string>
#include <troupe/troupe.hpp>

struct Counter {
  void add(int k) { n += k; }
  int n = 0;
};

void use(troupe::ref<Counter> counter) {
#ifdef CONTROL
  counter.tell<&Counter::add>(5);
#else
  counter.tell<&Counter::add>(std::string("five"));
#endif
}
