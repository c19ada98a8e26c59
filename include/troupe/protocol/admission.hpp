// admission: how a server accepts connections within its limits. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <stop_token>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::protocols {

// The limits of one server, and the waits until it may accept again. Thread: any.
class admission {
 public:
  // `sheds`: shed() may end connections, now or later.
  explicit admission(bool sheds) noexcept : sheds_(sheds) {}
  admission(const admission&) = delete;
  admission& operator=(const admission&) = delete;

  // Whether no more connections may be accepted now.
  virtual bool is_full() noexcept = 0;
  // Ends connections that do nothing, so that others can be accepted.
  virtual void shed() {}
  // A connection has ended.
  void left() { left_.set(); }

  // Waits until the server is not full. Returns false after the stop. Errors: throws cancelled when
  // the server's task is cancelled.
  task<bool> wait_for_space(std::stop_token end);
  // The same after an accept() that found no descriptor or no memory: waits until a connection has
  // ended, or for a short time, since other code also closes descriptors.
  task<bool> wait_for_descriptor(std::stop_token end);
  // Whether this error of accept() means that no descriptor or no memory is left.
  static bool is_exhaustion(const io_error& failure) noexcept;

 protected:
  ~admission() = default;

 private:
  task<bool> wait_until_left(bool limited, std::stop_token end);

  const bool sheds_;
  event left_;
};

// Accepts connections within the limits until the stop, and gives each to `begin`, which makes it
// count. Errors: the exceptions of accept(), except that it waits where no descriptor is left.
// Lifetime: all arguments must outlive the task.
template <class Listener, class Begin>
task<> accept_within(admission& limits, Listener& from, std::stop_token end, Begin& begin) {
  for (bool more = true; more;) {
    more = co_await limits.wait_for_space(end);
    if (!more) co_return;
    bool no_descriptor = false;
    try {
      auto peer = co_await from.accept().stop(end);
      begin(std::move(peer));
    } catch (const cancelled&) {
      if (!end.stop_requested()) throw;
      more = false;
    } catch (const io_error& failure) {
      if (!admission::is_exhaustion(failure)) throw;
      no_descriptor = true;
    }
    if (no_descriptor) more = co_await limits.wait_for_descriptor(end);
  }
}

}  // namespace troupe::protocols
