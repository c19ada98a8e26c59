// spawn() takes the task away, so it must be moved in.
// expect: troupe: spawn: a task is given away: spawn(std::move(the_task))
#include <troupe/troupe.hpp>

troupe::task<> greet() { co_return; }

void use(troupe::runtime& rt) {
  auto greeting = greet();
#ifdef CONTROL
  rt.spawn(std::move(greeting));
#else
  rt.spawn(greeting);
#endif
}
