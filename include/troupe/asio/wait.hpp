// asio_wait: a coroutine's wait for an operation of Asio: the part that names nothing of Asio. For
// the library's own use; users meet asio_token.
//
// Parties: the operation, through its handler; each request to cancel it, from its post to the end
// of its function; and the coroutine's turn while it starts the operation. The last party that
// leaves ends the wait: nothing that the operation or a request uses is freed before.
// Invariants
//   A1  a party enters only while another one is in: after the end of the wait none does.
//   A2  only the operation's handler writes the result, once.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>

#include "troupe/base/time_span.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::parts {

struct asio_limits {
  time_span at_most = time_span::max();
  std::stop_token stop;
};

class asio_wait : public tasks::suspension, private tasks::timer {
 public:
  // `post_cancel` sends a request to the operation's executor; the wait is entered for it already.
  explicit asio_wait(void (*post_cancel)(asio_wait&)) noexcept;

  // Returns false if the wait does not begin, since its call is cancelled or its limit is over.
  // Otherwise the turn is a party, and so is the operation that is about to start.
  bool begin(tasks::coroutine& suspended, const asio_limits& within);
  // The operation could not be started. Its handler is destroyed by then.
  void fail(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }
  // The operation has been started, or has failed: sets the limits, and leaves.
  void started(const asio_limits& within) noexcept;

  // Any thread. Once the handler was called, a request has nothing to cancel.
  // order: acquire  pairs with finish/release
  bool is_finished() const noexcept { return finished_.load(std::memory_order_acquire); }
  // By the handler: it has stored the result, or was destroyed without a call.
  void finish() noexcept;
  void leave() noexcept;

  // In the turn, when the coroutine continues. Removes the limits; no other thread touches the wait
  // afterwards. Throws if there is no result: the exception of the start, cancelled, timed_out, or
  // broken_promise if the handler was destroyed without a call.
  void end_limits() noexcept;
  void check(bool has_result) const;
  // Throws cancelled or timed_out if troupe has cancelled the operation.
  void check_cancelled() const;

 private:
  enum class reason : std::uint8_t { none, timed_out, cancelled };
  struct end_it {
    asio_wait& self;
    void operator()() const noexcept { self.end_early(reason::cancelled); }
  };
  void end_early(reason why) noexcept;
  bool enter() noexcept;
  static void on_time(timer& self) noexcept;
  static const char* act_on(sched::message* base, void* object, sched::message_act act);

  void (*const post_cancel_)(asio_wait&);
  hold open_;  // the program is not out of work while Asio has the operation
  std::atomic<std::uint32_t> parties_{0};
  std::atomic<bool> finished_{false};
  std::atomic<reason> why_{reason::none};
  tasks::timers* clock_ = nullptr;
  bool armed_ = false;
  std::exception_ptr failure_;
  std::optional<std::stop_callback<end_it>> stop_;
};

}  // namespace troupe::parts
