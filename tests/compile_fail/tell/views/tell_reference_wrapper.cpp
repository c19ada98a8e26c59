// A reference wrapper is a pointer in another form.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <functional>
#include <troupe/troupe.hpp>

struct Counter {
  void add_to(std::reference_wrapper<int> sum) { sum.get() += n; }
  void add(int k) { n += k; }
  int n = 0;
};

void use(troupe::ref<Counter> counter, int sum) {
#ifdef CONTROL
  counter.tell<&Counter::add>(sum);
#else
  counter.tell<&Counter::add_to>(std::ref(sum));
#endif
}
