// spawn() makes an actor from a class, not from an object.
// expect: troupe: spawn: this is an object, which cannot be called
// expect: activate(std::make_unique<T>(...))
#include <memory>
#include <troupe/troupe.hpp>

struct Counter {
  void add() {}
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Counter>();
  rt.activate(std::make_unique<Counter>());
#else
  rt.spawn(Counter{});
#endif
}
