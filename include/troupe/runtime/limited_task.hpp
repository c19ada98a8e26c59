// limited_task: a task that can be given a time limit and a stop token before it is awaited. For
// the library's own use; users meet the return values of resolve() and of the methods of
// tls_stream.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <stop_token>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/task.hpp"

namespace troupe::tasks {

// The limits that several operations in a row share: a time, on the clock of now(), and a stop
// token.
class limits {
 public:
  limits() noexcept {}
  limits(time_span at_most, std::stop_token stop)
      : due_(at_most == time_span::max() ? at_most : at_most.after(now())),
        stop_(std::move(stop)) {}

  // The remaining time for the next operation; 0 or less if the time is over.
  std::chrono::nanoseconds left() const {
    return due_ == std::chrono::nanoseconds::max() ? due_ : due_ - now();
  }
  bool over() const { return left().count() <= 0; }
  bool any() const noexcept {
    return due_ != std::chrono::nanoseconds::max() || stop_.stop_possible();
  }
  const std::stop_token& stop() const noexcept { return stop_; }
  // The same token, and the earlier of the two times.
  limits within(time_span at_most) const {
    limits both(at_most, stop_);
    if (due_ < both.due_) both.due_ = due_;
    return both;
  }

 private:
  std::chrono::nanoseconds due_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
};

// Await it once, at once. Call defines the operation:
//   using result                          the result of co_await
//   task<result> start(limits) &&         begins it
//   result block(std::chrono::nanoseconds at_most, std::stop_token) &&
//                                         optional: does it on a plain thread, which it blocks
template <class Call>
class [[nodiscard]] limited_task {
 public:
  template <class... Args>
  explicit limited_task(std::in_place_t, Args&&... args) : call_(std::forward<Args>(args)...) {}

  // Limit the operation, as for the awaitables of a stream: if it is not done in time, co_await
  // throws timed_out or cancelled. They return the same object, since each copy would lie in the
  // frame of the awaiting coroutine.
  limited_task&& timeout(time_span at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited_task&& stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }
  template <class Refused = void>
  limited_task&& timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited_task&& stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

  typename task<typename Call::result>::awaiter operator co_await() && {
    return std::move(*this).as_task().operator co_await();
  }
  // Blocks the calling thread until the operation is done. Only operations that need no handler or
  // task have it. Thread: one that is not the runtime's; in a handler it throws usage_error.
  template <class Blocking = Call>
  requires requires(Blocking&& call, std::stop_token stop) {
    std::move(call).block(std::chrono::nanoseconds(), stop);
  }
  typename Call::result get() && { return std::move(call_).block(at_most_, std::move(stop_)); }

  // For when_all and when_any. The time limit begins now.
  task<typename Call::result> as_task() && {
    return std::move(call_).start(limits(at_most_, std::move(stop_)));
  }

 private:
  Call call_;
  std::chrono::nanoseconds at_most_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
};

}  // namespace troupe::tasks
