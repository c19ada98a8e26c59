// expect: troupe: co_await takes a pending result: a task, a future
#include <troupe/troupe.hpp>

int half(int n) { return n / 2; }

troupe::task<int> use() {
#ifdef CONTROL
  co_return half(10);
#else
  co_return co_await half(10);
#endif
}
