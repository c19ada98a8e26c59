#include "troupe/protocol/admission.hpp"

#include <chrono>

#include "io/sockets/exhaustion.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::protocols {
namespace {

// How long to wait at the longest for the end of a connection, before the server sheds or accepts
// again.
constexpr std::chrono::nanoseconds retry_after = std::chrono::milliseconds(100);

}  // namespace

bool admission::is_exhaustion(const io_error& failure) noexcept {
  return io::is_exhaustion(failure);
}

// The event is reset before the limits are checked. A connection that leaves after the check
// therefore sets it.
task<bool> admission::wait_for_space(std::stop_token end) {
  while (!end.stop_requested()) {
    left_.reset();
    if (!is_full()) co_return true;
    shed();
    const bool more = co_await wait_until_left(sheds_, end);
    if (!more) break;
  }
  co_return false;
}

task<bool> admission::wait_for_descriptor(std::stop_token end) {
  left_.reset();
  shed();
  return wait_until_left(true, std::move(end));
}

// Returns false after the stop.
task<bool> admission::wait_until_left(bool limited, std::stop_token end) {
  try {
    future<> left = left_.wait();
    if (limited) {
      co_await std::move(left).timeout(retry_after).stop(end);
    } else {
      co_await std::move(left).stop(end);
    }
  } catch (const timed_out&) {
  } catch (const cancelled&) {
    // The task of the server itself was cancelled. Without this line its loop would never end.
    if (!end.stop_requested()) throw;
  }
  co_return !end.stop_requested();
}

}  // namespace troupe::protocols
