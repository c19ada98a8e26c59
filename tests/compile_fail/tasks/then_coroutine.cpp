// The callback would make a task that never runs.
// expect: troupe: future::then: a callback is a coroutine, which would never run
#include <chrono>

#include "troupe/troupe.hpp"

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn(greet()).then([&rt] { rt.spawn(greet()); });
#else
  rt.spawn(greet()).then([] { return greet(); });
#endif
}
