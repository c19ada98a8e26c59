// The lazy would make a work that never runs.
// expect: troupe: lazy: the function is a coroutine, which would never run
#include "troupe/troupe.hpp"

troupe::work<> greet() { co_return; }

void use() {
#ifdef CONTROL
  troupe::lazy([] { greet().get(); }).get();
#else
  troupe::lazy([] { return greet(); }).get();
#endif
}
