// Nobody would run the task that the callback makes.
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
