// The runtime destroys an actor, and could report an exception of its destructor to no caller.
// expect: troupe: spawn: an actor's destructor must not throw
#include <troupe/troupe.hpp>

struct Quiet {};
struct Loud {
  ~Loud() noexcept(false) {}
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Quiet>();
#else
  rt.spawn<Loud>();
#endif
}
