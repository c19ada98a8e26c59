// Where a virtual base lies depends on the whole object.
// expect: troupe: ref: the base class is a virtual base of the actor's
#include <troupe/troupe.hpp>

struct Shape {
  void draw() {}
};
struct Round : virtual Shape {};
struct Square : Shape {};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  troupe::ref<Shape> shape = rt.spawn<Square>();
#else
  troupe::ref<Shape> shape = rt.spawn<Round>();
#endif
  shape.tell<&Shape::draw>();
}
