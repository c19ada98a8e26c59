// The object could not be destroyed through the actor's class.
// expect: troupe: activate: the object is of a class that derives from this one, whose destructor is not virtual
#ifdef __clang__  // says it too, of std::unique_ptr
#pragma clang diagnostic ignored "-Wdelete-abstract-non-virtual-dtor"
#endif
#include <memory>

#include <troupe/troupe.hpp>

struct Shape {
#ifdef CONTROL
  virtual ~Shape() = default;
#endif
  virtual int area() = 0;
};

void use(troupe::runtime& rt, std::unique_ptr<Shape> shape) { rt.activate(std::move(shape)); }
