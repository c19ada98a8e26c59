// An abstract class has no objects.
// expect: troupe: spawn: an actor is an object of a class, neither const nor abstract
#include <troupe/troupe.hpp>

struct Shape {
  virtual ~Shape() = default;
  virtual void draw() = 0;
};
struct Circle : Shape {
  void draw() override {}
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Circle>();
#else
  rt.spawn<Shape>();
#endif
}
