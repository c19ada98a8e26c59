// The name of several functions has no type, so that no parameter takes it.
// expect: troupe: spawn: it takes a task, or a callable that makes a task, and its arguments
// also: reference to overloaded function
// expect: in a lambda
#include <troupe/troupe.hpp>

troupe::task<> work() { co_return; }
troupe::task<> work(int) { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn([](int n) { return work(n); }, 5);
#else
  rt.spawn(work, 5);
#endif
}
