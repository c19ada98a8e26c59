// A callable that can only be moved has to be given with std::move.
// expect: troupe: tell: the callable can only be moved; give it with std::move
#include <memory>
#include <troupe/troupe.hpp>

struct Counter {
  int n = 0;
};

void use(troupe::ref<Counter> to) {
  auto add = [by = std::make_unique<int>(1)](Counter& self) { self.n += *by; };
#ifdef CONTROL
  to.tell(std::move(add));
#else
  to.tell(add);
#endif
}
