// expect: troupe: ref: a method of an actor is not called but sent: to.tell<&T::method>(...)
#include <troupe/troupe.hpp>

struct Counter {
  void add(int) {}
};

void use(troupe::ref<Counter> to) {
#ifdef CONTROL
  to.tell<&Counter::add>(1);
#else
  to->add(1);
#endif
}
