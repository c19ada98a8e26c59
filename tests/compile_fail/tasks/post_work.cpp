// Nobody would run the work that this makes.
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
