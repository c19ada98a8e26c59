// An operation that has a name and a limit takes no further limit.
// expect: troupe: timeout() and stop() take over the awaitable: co_await std::move(later).timeout(...)
#include <chrono>
#include <utility>

#include <troupe/troupe.hpp>

troupe::task<> use(int fd, std::stop_token token) {
  auto&& readable = troupe::readable(fd).timeout(std::chrono::seconds(1));
#ifdef CONTROL
  co_await std::move(readable).stop(token);
#else
  co_await readable.stop(token);
#endif
}
