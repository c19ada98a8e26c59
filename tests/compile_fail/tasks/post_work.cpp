// The call would make a work that never runs.
// expect: troupe: post: this is a coroutine, which would never run
#include "troupe/troupe.hpp"

troupe::work<> greet() { co_return; }

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.post([] { greet().get(); });
#else
  rt.post([] { return greet(); });
#endif
}
