// The call would make a task that never runs.
// expect: troupe: post: this is a coroutine, which would never run
#include <chrono>

#include "troupe/troupe.hpp"

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn(greet());
  rt.post([] {});
#else
  rt.post([] { return greet(); });
#endif
}
