// expect: troupe: post: it takes what can be called without arguments, and moved
// also: reference to overloaded function
#include <troupe/troupe.hpp>

void work() {}
void work(int) {}

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.post([] { work(5); });
#else
  rt.post(work);
#endif
}
