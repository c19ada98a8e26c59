// A message holds its arguments, so they cannot be of an abstract class.
// expect: troupe: tell: a parameter of the method is of an abstract class
// expect: std::unique_ptr
#include <memory>
#include <troupe/troupe.hpp>

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double area() const override { return 1; }
};
struct Sum {
  void add(const Shape& one) { all += one.area(); }
  void add_owned(std::unique_ptr<Shape> one) { all += one->area(); }
  double all = 0;
};

void use(troupe::ref<Sum> to) {
#ifdef CONTROL
  to.tell<&Sum::add_owned>(std::make_unique<Square>());
#else
  to.tell<&Sum::add>(Square());
#endif
}
