// Each call would make a task that never runs.
// expect: troupe: every: this is a coroutine, which would never run
#include <chrono>

#include "troupe/troupe.hpp"

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.every(std::chrono::seconds(1), [&rt] { rt.spawn(greet()); }, {.weak = true});
#else
  rt.every(std::chrono::seconds(1), [] { return greet(); }, {.weak = true});
#endif
}
