// operation_suspension: a coroutine's wait for an operation. For the library's own use; users meet
// the return values of a stream's methods.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/io/buffer.hpp"
#include "troupe/io/operations/descriptor.hpp"
#include "troupe/io/operations/operation.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::io {

class reactor;
struct at_once;

// The suspension lies in a block of the pool that belongs to the frame of the awaiting coroutine
// (its_own); the buffer, if it is owned, lies in that frame. Only the completion of the operation
// ends the wait: a timeout, a stop token and the actor's end request it, and then wait for it. The
// frame therefore outlives all that the system does with the operation.
class operation_suspension : public tasks::suspension, public operation {
 public:
  explicit operation_suspension(action does) noexcept
      : suspension(&act_on), operation(does, true) {}
  // Returns a leased buffer that the coroutine has not taken.
  ~operation_suspension() {
    if (leased && data != nullptr) take_buffer();
  }
  // Returns false if the operation was done at once.
  bool suspend(tasks::coroutine& awaiter, descriptor& on);
  void on_completed() noexcept;  // operation::completed
  // Throws timed_out, cancelled or io_error if the operation failed.
  void check(const char* name) const;
  // As check(), for a transfer that must be complete.
  void check_whole(const char* name) const;
  // A read of a read_ahead ends: the next reader of that kind need not wait for it.
  void end_read_ahead() const noexcept;
  // Called before the result is taken: if the wait was given up, the system's result is kept for
  // the next operation of the descriptor, and this one ends as cancelled. The same for the part
  // that a read_exact has when its limit is over.
  void give_back_if_lost() noexcept {
    if (waiter != nullptr && (waiter->call->cancelled || (result < 0 && done != 0))) [[unlikely]]
      give_back();
  }
  // Closes the descriptor that the operation produced. For a coroutine that was destroyed before it
  // took the descriptor.
  void close_result() noexcept;
  // Returns the buffer of a leased read, which the suspension then no longer owns. Empty at a
  // second call.
  io_buffer take_buffer() noexcept;

 protected:
  enum class reason : std::uint8_t { none, timed_out, cancelled };
  void end_early(reason why) noexcept;

 private:
  std::string peer() const;
  bool carry_out() noexcept;
  void give_back() noexcept;
  bool take_kept() noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
  reactor& owner() const noexcept;  // only after it has begun

  friend std::int32_t write_at_once(tasks::coroutine&, const descriptor&, std::string_view,
                                    bool) noexcept;
  friend at_once;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  // The units of an operation that is done at once, of the 128 that a call may spend until others
  // run (async_call::spend). After 2 operations (a request, an answer) others run, even if the peer
  // has answered meanwhile. A listener may accept 64; with fewer it would fall behind, next to
  // thousands of busy connections.
  static constexpr std::uint8_t share = 64, accept_share = 2;
  std::atomic<reason> why_{reason::none};
  std::uint16_t generation_ = 0;
};

// The same with a time limit or a stop token, or both.
class limited_suspension final : public operation_suspension, public tasks::timer {
 public:
  explicit limited_suspension(action does) noexcept
      : operation_suspension(does), timer(&on_time, tasks::timer_source::io_timeout) {}
  bool suspend(tasks::coroutine& awaiter, descriptor& on, std::chrono::nanoseconds at_most,
               const std::stop_token& stop);
  // Removes the limits; no other thread touches the suspension afterwards.
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

// Functions, because the body of a coroutine would keep the address of the pool's thread-local.
void begin_wait(operation_suspension*& waiting, action opcode);
void begin_wait(limited_suspension*& waiting, action opcode);
void end_wait(operation_suspension* waiting) noexcept;
void end_wait(limited_suspension* waiting) noexcept;

// Owns a suspension from its begin() until its coroutine has continued. Rejected: the suspension in
// the frame itself, since GCC keeps one for each co_await of the coroutine: 160 bytes each, of
// which only one is in use at a time.
template <class Wait>
class its_own {
 public:
  its_own() = default;
  its_own(its_own&&) noexcept {}  // only moved from before it has begun
  its_own& operator=(its_own&&) = delete;
  ~its_own() { end(); }
  // Throws std::bad_alloc.
  Wait& begin(action opcode) {
    end();
    begin_wait(waiting_, opcode);
    return *waiting_;
  }
  bool has_begun() const noexcept { return waiting_ != nullptr; }
  Wait& operator*() const noexcept { return *waiting_; }

 private:
  void end() noexcept {
    if (Wait* const ended = std::exchange(waiting_, nullptr)) end_wait(ended);
  }
  Wait* waiting_ = nullptr;
};

// Sends, in a turn, the bytes that the system accepts without a wait, at most 2 GiB. Returns their
// number, or -errno if the system refuses; 0 if the system accepts none now, and where a suspension
// has to check more. With `whole`, and if only a part was sent, the caller must send the rest or
// call give_up_rest().
std::int32_t write_at_once(tasks::coroutine& awaiter, const descriptor& to, std::string_view bytes,
                           bool whole) noexcept;
void give_up_rest(const descriptor& descriptor) noexcept;

template <class Job>
class limited;

// The awaiter of an awaitable that keeps its own state. An awaiter with a job of its own would lie
// in the frame beside the awaitable.
template <class Awaitable>
class awaiter_of {
 public:
  static constexpr bool puts_back = Awaitable::puts_back;  // for the branches of when_any
  explicit awaiter_of(Awaitable& awaited) noexcept : awaited_(awaited) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiter) {
    return awaited_.await_suspend(awaiter);
  }
  decltype(auto) await_resume() { return awaited_.await_resume(); }

 private:
  Awaitable& awaited_;
};

template <class Job>
concept may_be_done_at_once = requires(Job job, tasks::coroutine& awaiter) {
  job.done_at_once(awaiter);
};

// Throws std::bad_alloc.
template <class Wait, class Job>
Wait& begin_for(its_own<Wait>& wait, Job& job) {
  if constexpr (may_be_done_at_once<Job>) {
    try {
      return wait.begin(Job::opcode);
    } catch (...) {
      job.give_up_rest();
      throw;
    }
  } else {
    return wait.begin(Job::opcode);
  }
}

template <class Operation>
task<typename Operation::result> run_started(Operation operation) {
  co_return co_await std::move(operation);
}
// spawn is troupe::spawn, of a layer above this one: it is found by the type of its argument.
template <class Operation>
auto start_operation(Operation operation) {
  return spawn(run_started(std::move(operation)));
}

// The return value of a stream's methods. Await it once, at once; a variable of it that is never
// used is a warning of the compiler. Job defines the operation:
//   using result                                the result of co_await
//   static constexpr action opcode
//   descriptor& prepare(operation_suspension&)  fills the operation in
//   result finish(operation_suspension&)        makes the result, or throws
// and, if it may be done without a wait:
//   bool done_at_once(tasks::coroutine&)
//   result given_at_once()                      the result in that case
//   void give_up_rest()                         not all was done, and no suspension can be made
template <class Job>
class [[nodiscard, gnu::warn_unused]] awaitable {
 public:
  using result = typename Job::result;
  static constexpr bool puts_back = can_be_kept(Job::opcode);

  template <class... Args>
  explicit awaitable(std::in_place_t, Args && ... args) : job_(std::forward<Args>(args)...) {}
  awaitable(awaitable &&) = default;
  awaitable& operator=(awaitable&&) = delete;

  awaiter_of<awaitable> operator co_await()&& noexcept { return awaiter_of<awaitable>(*this); }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    if constexpr (may_be_done_at_once<Job>) {
      if (job_.done_at_once(awaiting.promise())) return false;
    }
    operation_suspension& wait = begin_for(wait_, job_);
    return wait.suspend(awaiting.promise(), job_.prepare(wait));
  }
  result await_resume() {
    if constexpr (may_be_done_at_once<Job>) {
      if (!wait_.has_begun()) return job_.given_at_once();
    }
    (*wait_).give_back_if_lost();
    return job_.finish(*wait_);
  }

  // Limit the operation: it ends after `at_most`, or when a stop is requested. If it was not done
  // by then, co_await throws timed_out or cancelled. Effects that it already had remain; a result
  // that arrived just before the limit is given.
  limited<Job> timeout(time_span at_most)&& { return limited<Job>(std::move(job_), at_most, {}); }
  limited<Job> stop(std::stop_token token)&& {
    return limited<Job>(std::move(job_), std::chrono::nanoseconds::max(), std::move(token));
  }
  template <class Refused = void>
  limited<Job> timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited<Job> stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

  // Starts the operation now, in a task of its own, and returns a future of its result. Without it
  // an operation starts when it is awaited. A future that is dropped does not end the operation:
  // limit it, `timeout(span)`, before. Thread: as troupe::spawn. Cost: as a task. Errors: the
  // operation's, from the future; usage_error outside of handlers and tasks. Lifetime: the stream,
  // and the memory that is read or written, must live until the future is ready.
  //
  // Example (declarations):
  //     troupe::task<> meet(troupe::tcp_listener& listener) {
  //       auto connects = troupe::tcp_stream::connect(listener.local()).start();
  //       troupe::tcp_stream here = co_await listener.accept();
  //       troupe::tcp_stream there = co_await std::move(connects);
  //     }
  auto start()&& { return start_operation(std::move(*this)); }

 private:
  its_own<operation_suspension> wait_;
  Job job_;  // destroyed first: its destructor frees a result that was not taken
};

template <class Job>
class [[nodiscard, gnu::warn_unused]] limited {
 public:
  using result = typename Job::result;
  static constexpr bool puts_back = can_be_kept(Job::opcode);

  limited(Job && job, time_span at_most, std::stop_token stop) noexcept
      : job_(std::move(job)), at_most_(at_most), stop_(std::move(stop)) {}
  limited(limited &&) = default;
  limited& operator=(limited&&) = delete;

  awaiter_of<limited> operator co_await()&& noexcept { return awaiter_of<limited>(*this); }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    if constexpr (may_be_done_at_once<Job>) {
      if (at_most_.count() > 0 && !stop_.stop_requested() && job_.done_at_once(awaiting.promise()))
        return false;
    }
    limited_suspension& wait = begin_for(wait_, job_);
    return wait.suspend(awaiting.promise(), job_.prepare(wait), at_most_, stop_);
  }
  result await_resume() {
    if constexpr (may_be_done_at_once<Job>) {
      if (!wait_.has_begun()) return job_.given_at_once();
    }
    (*wait_).release();
    (*wait_).give_back_if_lost();
    return job_.finish(*wait_);
  }

  // They return the same object, since each copy would lie in the frame of the awaiting coroutine.
  limited&& timeout(time_span at_most)&& {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited&& stop(std::stop_token token)&& {
    stop_ = std::move(token);
    return std::move(*this);
  }
  template <class Refused = void>
  limited&& timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited&& stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

  // As awaitable::start().
  auto start()&& { return start_operation(std::move(*this)); }

 private:
  its_own<limited_suspension> wait_;
  Job job_;
  std::chrono::nanoseconds at_most_;
  std::stop_token stop_;
};

}  // namespace troupe::io
