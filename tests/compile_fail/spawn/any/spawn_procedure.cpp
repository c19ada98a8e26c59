// A procedure returns no task.
// expect: troupe: spawn: the callable makes no task
// expect: give a procedure to post()
#include <troupe/troupe.hpp>

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn([]() -> troupe::task<> { co_return; });
  rt.post([] {});
#else
  rt.spawn([] {});
#endif
}
