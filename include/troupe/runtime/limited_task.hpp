// limited_task: a task that is given a limit of time or a stop token before it is awaited. The
// library's own; users meet what resolve() and the methods of tls_stream return.
#pragma once

#include <chrono>
#include <stop_token>
#include <utility>

#include "troupe/runtime/here.hpp"
#include "troupe/task/task.hpp"

namespace troupe::tasks {

// What several operations in a row have together: a time of now()'s, and a token.
class limits {
 public:
  limits() noexcept {}
  limits(std::chrono::nanoseconds at_most, std::stop_token stop)
      : due_(at_most == std::chrono::nanoseconds::max() ? at_most : after(at_most)),
        stop_(std::move(stop)) {}

  // From now on, for the next operation; 0 or less when the time is over.
  std::chrono::nanoseconds left() const {
    return due_ == std::chrono::nanoseconds::max() ? due_ : due_ - now();
  }
  bool over() const { return left().count() <= 0; }
  bool any() const noexcept {
    return due_ != std::chrono::nanoseconds::max() || stop_.stop_possible();
  }
  const std::stop_token& stop() const noexcept { return stop_; }
  // The same token, and the earlier one of the two times.
  limits within(std::chrono::nanoseconds at_most) const {
    limits both(at_most, stop_);
    if (due_ < both.due_) both.due_ = due_;
    return both;
  }

 private:
  static std::chrono::nanoseconds after(std::chrono::nanoseconds span) {
    const std::chrono::nanoseconds begins = now();
    if (span.count() <= 0) return begins;  // or left() overflows
    return span > std::chrono::nanoseconds::max() - begins ? std::chrono::nanoseconds::max()
                                                           : begins + span;
  }
  std::chrono::nanoseconds due_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
};

// To be awaited once, at once. Call says what is done:
//   using result                          what co_await gives
//   task<result> start(limits) &&         begins it
template <class Call>
class [[nodiscard]] limited_task {
 public:
  template <class... Args>
  explicit limited_task(std::in_place_t, Args&&... args) : call_(std::forward<Args>(args)...) {}

  // As of the awaitables of a stream: timed_out or cancelled is thrown when it had not come about.
  // They give the same object, since each copy would lie in the frame of the coroutine that awaits
  // it.
  limited_task&& timeout(std::chrono::nanoseconds at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited_task&& stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }
  template <class Refused = void>
  limited_task&& timeout(std::chrono::nanoseconds) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited_task&& stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

  typename task<typename Call::result>::awaiter operator co_await() && {
    return std::move(*this).as_task().operator co_await();
  }
  // For when_all and when_any; its time begins now.
  task<typename Call::result> as_task() && {
    return std::move(call_).start(limits(at_most_, std::move(stop_)));
  }

 private:
  Call call_;
  std::chrono::nanoseconds at_most_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
};

}  // namespace troupe::tasks
