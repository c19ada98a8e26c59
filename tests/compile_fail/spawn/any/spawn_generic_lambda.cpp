// The arguments of the lambda are missing.
// expect: troupe: spawn: this is an object, which cannot be called without arguments: the arguments of a lambda follow it
#include <troupe/troupe.hpp>

void use(troupe::runtime& rt) {
  const auto work = [](auto n) -> troupe::task<> {
    static_cast<void>(n);
    co_return;
  };
#ifdef CONTROL
  rt.spawn(work, 5);
#else
  rt.spawn(work);
#endif
}
