// A future that has a name and a limit takes no further limit.
// expect: troupe: timeout() and stop() take over the awaitable: co_await std::move(later).timeout(...)
#include <chrono>
#include <utility>

#include <troupe/troupe.hpp>

troupe::task<int> use(troupe::future<int> later, std::stop_token token) {
  auto limited = std::move(later).timeout(std::chrono::seconds(1));
#ifdef CONTROL
  co_return co_await std::move(limited).stop(token);
#else
  co_return co_await limited.stop(token);
#endif
}
