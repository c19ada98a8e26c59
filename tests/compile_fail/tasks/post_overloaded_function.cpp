// expect: troupe: post: it takes a movable callable without parameters
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
