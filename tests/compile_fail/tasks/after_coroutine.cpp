// The call would make a task that never runs.
// expect: troupe: after: this is a coroutine, which would never run
#include <chrono>

#include "troupe/troupe.hpp"

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.after(std::chrono::seconds(1), [&rt] { rt.spawn(greet()); });
#else
  rt.after(std::chrono::seconds(1), [] { return greet(); });
#endif
}
