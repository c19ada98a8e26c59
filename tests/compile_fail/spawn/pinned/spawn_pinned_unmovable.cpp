// An argument that can be neither copied nor moved cannot travel to the other thread.
// expect: troupe: spawn: an argument can be neither copied nor moved
// expect: troupe::unchecked<X&>{it}
#include <troupe/troupe.hpp>

struct Clock {
  explicit Clock(troupe::runtime& runtime) : rt(runtime) {}
  troupe::runtime& rt;
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Clock>(rt);
  rt.spawn<Clock>(troupe::pinned("clock"), troupe::unchecked<troupe::runtime&>{rt});
#else
  rt.spawn<Clock>(troupe::pinned("clock"), rt);
#endif
}
