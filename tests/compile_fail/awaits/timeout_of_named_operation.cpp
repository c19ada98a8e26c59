// An operation of a stream must be awaited at once, so it needs no name.
// expect: troupe: timeout() and stop() take over the awaitable: co_await std::move(later).timeout(...)
#include <chrono>
#include <utility>

#include <troupe/troupe.hpp>

troupe::task<> use(int fd) {
  auto readable = troupe::readable(fd);
#ifdef CONTROL
  co_await std::move(readable).timeout(std::chrono::seconds(1));
#else
  co_await readable.timeout(std::chrono::seconds(1));
#endif
}
