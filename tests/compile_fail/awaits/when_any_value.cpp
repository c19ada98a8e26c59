// A value cannot be awaited.
// expect: troupe: when_all and when_any: they take awaitables
#include <troupe/troupe.hpp>

troupe::task<int> number() { co_return 1; }

troupe::task<> use() {
#ifdef CONTROL
  co_await troupe::when_any(number(), number());
#else
  co_await troupe::when_any(number(), 2);
#endif
}
