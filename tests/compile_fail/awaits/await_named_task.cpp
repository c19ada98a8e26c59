// expect: troupe: a task is awaited once: co_await std::move(the_task)
#include <troupe/troupe.hpp>
#include <utility>

troupe::task<int> one() { co_return 1; }

troupe::task<int> use() {
  troupe::task<int> later = one();
#ifdef CONTROL
  co_return co_await std::move(later);
#else
  co_return co_await later;
#endif
}
