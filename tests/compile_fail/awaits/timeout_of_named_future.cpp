// A future that keeps its name would have no result afterwards.
// expect: troupe: timeout() and stop() take over the awaitable: co_await std::move(later).timeout(...)
#include <chrono>
#include <utility>

#include <troupe/troupe.hpp>

troupe::task<int> use(troupe::future<int> later) {
#ifdef CONTROL
  co_return co_await std::move(later).timeout(std::chrono::seconds(1));
#else
  co_return co_await later.timeout(std::chrono::seconds(1));
#endif
}
