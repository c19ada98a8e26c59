// The callable must take the arguments that spawn() gets.
// expect: troupe: spawn: the callable cannot be called with these arguments
#include <string>
#include <troupe/troupe.hpp>

troupe::task<> greet(std::string name, int times) {
  static_cast<void>(name), static_cast<void>(times);
  co_return;
}

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn(greet, "world", 3);
#else
  rt.spawn(greet, "world");
#endif
}
