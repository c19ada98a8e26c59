// The method takes a reference that it could write through, but the sender's object may be gone by
// then.
// expect: troupe: tell: the method takes a reference that it could write through
#include <troupe/troupe.hpp>

struct Counter {
  void add_to(int& sum) { sum += n; }
  void add(int k) { n += k; }
  int n = 0;
};

void use(troupe::ref<Counter> counter) {
  int sum = 0;
#ifdef CONTROL
  counter.tell<&Counter::add>(sum);
#else
  counter.tell<&Counter::add_to>(sum);
#endif
}
