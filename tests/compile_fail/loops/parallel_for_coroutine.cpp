// Each call would make a work that never runs.
// expect: troupe: parallel_for: the body is a coroutine, which would never run
#include "troupe/troupe.hpp"

troupe::work<> greet() { co_return; }

void use() {
#ifdef CONTROL
  troupe::parallel_for(0, 9, [](int) { greet().get(); }).get();
#else
  troupe::parallel_for(0, 9, [](int) { return greet(); }).get();
#endif
}
