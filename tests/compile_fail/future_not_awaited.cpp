// expect: troupe: future: the value is not here yet: co_await it in a task or a coroutine handler
#include <troupe/troupe.hpp>

struct Counter {
  long get() const { return 1; }
};

troupe::task<> use(troupe::ref<Counter> to) {
#ifdef CONTROL
  const int n = static_cast<int>(co_await to.ask<&Counter::get>());
#else
  const int n = to.ask<&Counter::get>();
#endif
  static_cast<void>(n);
  co_return;
}
