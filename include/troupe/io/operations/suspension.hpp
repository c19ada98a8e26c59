// wait: a coroutine's wait for an operation. The library's own; users meet what a stream's methods
// return.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "troupe/io/buffer.hpp"
#include "troupe/io/operations/descriptor.hpp"
#include "troupe/io/operations/operation.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::io {

class reactor;
struct at_once;

// The operation lies in a block of the pool, which belongs to the frame of the coroutine that
// awaits it (its_own), and the buffer in that frame if it is owned. Nothing but its completion ends
// the wait: a timeout, a stop token and the actor's end ask for that, and wait on. So the frame
// outlives what the system does with it.
class operation_suspension : public tasks::suspension, public operation {
 public:
  explicit operation_suspension(action does) noexcept
      : suspension(&act_on), operation(does, true) {}
  // A buffer that was leased and that nobody has asked for goes back.
  ~operation_suspension() {
    if (leased && data != nullptr) take_buffer();
  }
  // False when it was done at once.
  bool suspend(tasks::coroutine& who, descriptor& on);
  void come_to_its_end() noexcept;  // operation::completed
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
  reactor& home() const noexcept;  // once it has begun

  friend std::int32_t write_at_once(tasks::coroutine&, const descriptor&, std::string_view,
                                    bool) noexcept;
  friend at_once;
  // Done at once in a row: 2 of them, an answer, then others have their turn; a peer that answers
  // meanwhile is no reason to go on. A listener may take 64: beside thousands of busy connections
  // it would else fall behind.
  static constexpr std::uint8_t at_once_max = 64, share = 32, accept_share = 1;
  std::atomic<reason> why_{reason::none};
  std::uint16_t generation_ = 0;
};

// The same with a limit of time and a stop token, or one of them.
class limited_suspension final : public operation_suspension, public tasks::timer {
 public:
  explicit limited_suspension(action does) noexcept : operation_suspension(does), timer(&on_time) {}
  bool suspend(tasks::coroutine& who, descriptor& on, std::chrono::nanoseconds at_most,
               const std::stop_token& stop);
  // The limits are no more: nobody else touches the wait from here on.
  void release() noexcept;

 private:
  struct on_stop {
    limited_suspension& self;
    void operator()() const noexcept { self.end_early(reason::cancelled); }
  };
  static void on_time(timer& self) noexcept {
    static_cast<limited_suspension&>(self).end_early(reason::timed_out);
  }
  std::optional<std::stop_callback<on_stop>> stop_;
  bool armed_ = false;
};

// Not in a coroutine's body, which would keep the address of the pool's thread-local.
void begin_wait(operation_suspension*& made, action what);
void begin_wait(limited_suspension*& made, action what);
void end_wait(operation_suspension* one) noexcept;
void end_wait(limited_suspension* one) noexcept;

// A wait from where it begins until its coroutine has gone on. Rejected: in the frame itself, where
// GCC keeps one for each co_await of the coroutine: 160 bytes each, of which one at a time is in
// use.
template <class Wait>
class its_own {
 public:
  its_own() = default;
  its_own(its_own&&) noexcept {}  // of one that has not begun
  its_own& operator=(its_own&&) = delete;
  ~its_own() { end(); }
  // Throws std::bad_alloc.
  Wait& begin(action what) {
    end();
    begin_wait(one_, what);
    return *one_;
  }
  bool has_begun() const noexcept { return one_ != nullptr; }
  Wait& operator*() const noexcept { return *one_; }

 private:
  void end() noexcept {
    if (Wait* const ended = std::exchange(one_, nullptr)) end_wait(ended);
  }
  Wait* one_ = nullptr;
};

// In a turn: what the system takes of this, at most 2 GiB, without anybody waiting; -errno when it
// refuses. 0 when it has no room, and where a wait is to look closer. `whole`: when it takes a part
// only, the rest is to follow, or give_up_rest().
std::int32_t write_at_once(tasks::coroutine& who, const descriptor& to, std::string_view bytes,
                           bool whole) noexcept;
void give_up_rest(const descriptor& of) noexcept;

template <class Job>
class limited;

// Of one that awaits by itself: an awaiter with a job of its own would lie in the frame beside it.
template <class Awaitable>
class awaiter_of {
 public:
  explicit awaiter_of(Awaitable& of) noexcept : of_(of) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    return of_.await_suspend(who);
  }
  decltype(auto) await_resume() { return of_.await_resume(); }

 private:
  Awaitable& of_;
};

template <class Job>
concept may_be_done_at_once = requires(Job job, tasks::coroutine& who) {
  job.done_at_once(who);
};

// Throws std::bad_alloc.
template <class Wait, class Job>
Wait& begin_for(its_own<Wait>& wait, Job& job) {
  if constexpr (may_be_done_at_once<Job>) {
    try {
      return wait.begin(Job::what);
    } catch (...) {
      job.give_up_rest();
      throw;
    }
  } else {
    return wait.begin(Job::what);
  }
}

// What a method of a stream returns: to be awaited once, at once. Job says what is done:
//   using result                          what co_await gives
//   static constexpr action what
//   descriptor& prepare(operation_wait&)  fills the operation in
//   result finish(operation_wait&)        makes the result, or throws
// and if it may be done without a wait
//   bool done_at_once(tasks::coroutine&)
//   result given_at_once()                what it came to then
//   void give_up_rest()                   it was not, and no wait can be made for the rest
template <class Job>
class [[nodiscard]] awaitable {
 public:
  template <class... Args>
  explicit awaitable(std::in_place_t, Args&&... args) : job_(std::forward<Args>(args)...) {}
  awaitable(awaitable&&) = default;
  awaitable& operator=(awaitable&&) = delete;

  awaiter_of<awaitable> operator co_await() && noexcept { return awaiter_of<awaitable>(*this); }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    if constexpr (may_be_done_at_once<Job>) {
      if (job_.done_at_once(who.promise())) return false;
    }
    operation_suspension& wait = begin_for(wait_, job_);
    return wait.suspend(who.promise(), job_.prepare(wait));
  }
  typename Job::result await_resume() {
    if constexpr (may_be_done_at_once<Job>) {
      if (!wait_.has_begun()) return job_.given_at_once();
    }
    return job_.finish(*wait_);
  }

  // Not longer than this, or not when a stop is requested: then the operation is ended, and when it
  // had not come about timed_out or cancelled is thrown. What it had done by then is done; a result
  // that came just before is given.
  limited<Job> timeout(std::chrono::nanoseconds at_most) && {
    return limited<Job>(std::move(job_), at_most, {});
  }
  limited<Job> stop(std::stop_token token) && {
    return limited<Job>(std::move(job_), std::chrono::nanoseconds::max(), std::move(token));
  }
  template <class Refused = void>
  limited<Job> timeout(std::chrono::nanoseconds) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited<Job> stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 private:
  its_own<operation_suspension> wait_;
  Job job_;  // goes first: it looks what has become of an operation that nobody asked for any more
};

template <class Job>
class [[nodiscard]] limited {
 public:
  limited(Job&& job, std::chrono::nanoseconds at_most, std::stop_token stop) noexcept
      : job_(std::move(job)), at_most_(at_most), stop_(std::move(stop)) {}
  limited(limited&&) = default;
  limited& operator=(limited&&) = delete;

  awaiter_of<limited> operator co_await() && noexcept { return awaiter_of<limited>(*this); }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    if constexpr (may_be_done_at_once<Job>) {
      if (at_most_.count() > 0 && !stop_.stop_requested() && job_.done_at_once(who.promise()))
        return false;
    }
    limited_suspension& wait = begin_for(wait_, job_);
    return wait.suspend(who.promise(), job_.prepare(wait), at_most_, stop_);
  }
  typename Job::result await_resume() {
    if constexpr (may_be_done_at_once<Job>) {
      if (!wait_.has_begun()) return job_.given_at_once();
    }
    (*wait_).release();
    return job_.finish(*wait_);
  }

  // They give the same object, since each copy would lie in the frame of the coroutine that awaits
  // it.
  limited&& timeout(std::chrono::nanoseconds at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited&& stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }
  template <class Refused = void>
  limited&& timeout(std::chrono::nanoseconds) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited&& stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 private:
  its_own<limited_suspension> wait_;
  Job job_;
  std::chrono::nanoseconds at_most_;
  std::stop_token stop_;
};

}  // namespace troupe::io
