// The call would make a task that never runs.
// expect: troupe: main_thread::post: this is a coroutine, which would never run
#include <chrono>

#include "troupe/troupe.hpp"

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.main().post([&rt] { rt.spawn(greet()); });
#else
  rt.main().post([] { return greet(); });
#endif
}
