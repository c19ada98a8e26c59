// when_all and when_any do not call their arguments.
// expect: troupe: when_all and when_any: a lambda or function that makes a task is not called here
#include <troupe/troupe.hpp>

troupe::task<> use() {
  auto one = []() -> troupe::task<> { co_return; };
#ifdef CONTROL
  co_await troupe::when_all(one(), one());
#else
  co_await troupe::when_all(one, one());
#endif
}
