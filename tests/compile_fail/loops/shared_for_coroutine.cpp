// Each call would make a work that never runs.
// expect: troupe: shared_for: the body is a coroutine, which would never run
#include "troupe/troupe.hpp"

troupe::work<> greet() { co_return; }

void use() {
#ifdef CONTROL
  troupe::shared_for(0, 9, [](int) { greet().get(); });
#else
  troupe::shared_for(0, 9, [](int) { return greet(); });
#endif
}
