// wait: a coroutine's wait for an operation. The library's own; users meet what a stream's methods return.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/io/buffer.hpp"
#include "troupe/io/descriptor.hpp"
#include "troupe/io/operation.hpp"
#include "troupe/task/flow.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::io {

class reactor;

// The operation lies in the frame of the coroutine that awaits it, and with it the buffer if it is owned. Nothing but its
// completion ends the wait: a timeout, a stop token and the actor's end ask for that, and wait on. So the frame outlives
// what the system does with it.
class operation_wait : public tasks::wait, public operation {
 public:
  explicit operation_wait(action does) noexcept : wait(&act_on), operation(does, &on_completed) {}
  // False when it was done at once.
  bool suspend(tasks::coroutine& who, descriptor& on);
  // Throws timed_out, cancelled or io_error when it failed.
  void check(const char* name) const;
  // As check(), for a transfer that must be whole.
  void check_whole(const char* name) const;
  // What it came to is a descriptor that nobody asks for any more.
  void close_result() noexcept;
  // What a leased read came to. Empty, and nobody's any more, afterwards.
  io_buffer take_buffer() noexcept;

 protected:
  enum class reason : std::uint8_t { none, timed_out, cancelled };
  void end_early(reason why) noexcept;

 private:
  std::string peer() const;
  bool carry_out() noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
  static void on_completed(operation& self) noexcept;

  // Done at once in a row: 2 of them, an answer, then others have their turn; a peer that answers meanwhile is no reason to go on. A
  // listener may take 64: beside thousands of busy connections it would else fall behind.
  static constexpr std::uint8_t at_once_max = 64, share = 32, accept_share = 1;
  std::atomic<reason> why_{reason::none};
  std::uint16_t generation_ = 0;
  reactor* home_ = nullptr;
};

// The same with a limit of time and a stop token, or one of them.
class limited_wait final : public operation_wait, public tasks::timer {
 public:
  explicit limited_wait(action does) noexcept : operation_wait(does), timer(&on_time) {}
  bool suspend(tasks::coroutine& who, descriptor& on, std::chrono::nanoseconds at_most, const std::stop_token& stop);
  // The limits are no more: nobody else touches the wait from here on.
  void release() noexcept;

 private:
  struct on_stop {
    limited_wait& self;
    void operator()() const noexcept { self.end_early(reason::cancelled); }
  };
  static void on_time(timer& self) noexcept { static_cast<limited_wait&>(self).end_early(reason::timed_out); }
  std::optional<std::stop_callback<on_stop>> stop_;
  bool armed_ = false;
};

template <class Job>
class limited;

// What a method of a stream returns: to be awaited once, at once. Job says what is done:
//   using result                          what co_await gives
//   static constexpr action what
//   descriptor& prepare(operation_wait&)  fills the operation in
//   result finish(operation_wait&)        makes the result, or throws
template <class Job>
class [[nodiscard]] awaitable {
 public:
  template <class... Args>
  explicit awaitable(std::in_place_t, Args&&... args) : job_(std::forward<Args>(args)...) {}

  class awaiter {
   public:
    explicit awaiter(Job&& job) noexcept : wait_(Job::what), job_(std::move(job)) {}
    awaiter(awaiter&&) = delete;
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> who) {
      return wait_.suspend(who.promise(), job_.prepare(wait_));
    }
    typename Job::result await_resume() { return job_.finish(wait_); }

   private:
    operation_wait wait_;
    Job job_;  // goes first: it looks what has become of an operation that nobody asked for any more
  };
  awaiter operator co_await() && { return awaiter(std::move(job_)); }

  // Not longer than this, or not when a stop is requested: then the operation is ended, and when it had not come about
  // timed_out or cancelled is thrown. What it had done by then is done; a result that came just before is given.
  limited<Job> timeout(std::chrono::nanoseconds at_most) && { return limited<Job>(std::move(job_)).timeout(at_most); }
  limited<Job> stop(std::stop_token token) && { return limited<Job>(std::move(job_)).stop(std::move(token)); }

 private:
  Job job_;
};

template <class Job>
class [[nodiscard]] limited {
 public:
  explicit limited(Job&& job) noexcept : job_(std::move(job)) {}

  class awaiter {
   public:
    explicit awaiter(limited&& of) noexcept : wait_(Job::what), of_(std::move(of)) {}
    awaiter(awaiter&&) = delete;
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> who) {
      return wait_.suspend(who.promise(), of_.job_.prepare(wait_), of_.at_most_, of_.stop_);
    }
    typename Job::result await_resume() {
      wait_.release();
      return of_.job_.finish(wait_);
    }

   private:
    limited_wait wait_;
    limited of_;
  };
  awaiter operator co_await() && { return awaiter(std::move(*this)); }

  limited timeout(std::chrono::nanoseconds at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }

 private:
  Job job_;
  std::chrono::nanoseconds at_most_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
};

}  // namespace troupe::io
