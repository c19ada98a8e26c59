// waiting: the one awaitable of channels and locks. For the library's own use; users meet the
// return values of send(), receive(), lock() and the like.
//
// What can be waited for keeps a list of waiters under a mutex of its own. Whoever takes a waiter
// out of the list decides how its wait ends: the party that gives it a value or a lock, or the wait
// itself, when its time limit, its stop token or a cancelled call ends it. So a wait ends once, and
// a wait that was given up has neither taken nor lost a value.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/sync/waiter.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::sync {

// Where a plain thread sleeps during a wait.
class thread_sleep {
 public:
  // Returns false if the time is over first.
  bool wait_for(std::chrono::nanoseconds at_most) noexcept;
  // The thread may free this object as soon as the word has changed.
  void notify() noexcept;

 private:
  std::atomic<std::uint32_t> told_{0};
};

// Throws the error of a wait that ended early. `name` says what it waited for.
[[noreturn]] void throw_ended(const tasks::suspension& one, const char* name);

// An operation is what waits, together with what it brings or takes:
//   struct operation : waiter {
//     static constexpr const char* name    what it waits for, as "room in a channel"
//     bool start() noexcept                does it at once and returns false, or puts itself into a
//                                          list and returns true. From then on `wake` may be called
//     bool withdraw() noexcept             takes it out of the list; false if another party did
//     T finish()                           the result, after the wait has ended; may throw
//     operation(operation&&) noexcept      only before start()
//   };
//     void begin_in(tasks::coroutine&)     optional: the coroutine that is about to wait
//     bool find_holder(tasks::lock_holder&) noexcept
//                                          only for locks: who holds it; false if the wait is over
// When `wake` is called, the result is already in the operation.
template <class Operation>
concept waits_for_lock = requires(Operation one, tasks::lock_holder found) {
  { one.find_holder(found) }
  noexcept->std::same_as<bool>;
};

template <class Operation>
class limited_awaiting;
struct awaiting_access;  // for select

// The awaitable of an operation: co_await it in a coroutine, also with a time limit or a stop
// token; on a plain thread, get() blocks. Await it once.
//
// Thread: the operation starts at the co_await or the get(), not before. Errors: timed_out,
// cancelled (also when the call is cancelled), and those of the operation. In all of these cases
// the operation has not happened. Lifetime: an awaitable that is dropped has done nothing.
template <class Operation>
class [[nodiscard]] awaiting : protected Operation, protected tasks::suspension {
 public:
  using value = decltype(std::declval<Operation&>().finish());

  template <class... Args>
  explicit awaiting(std::in_place_t, Args&&... args)
      : Operation(std::forward<Args>(args)...), suspension(&act_on) {
    for_lock = waits_for_lock<Operation>;
  }
  awaiting(awaiting&& other) noexcept
      : Operation(std::move(static_cast<Operation&>(other))), suspension(&act_on) {
    for_lock = waits_for_lock<Operation>;
  }

  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaits) noexcept {
    return suspend(awaits.promise());
  }
  value await_resume() {
    check();
    return Operation::finish();
  }

  // Blocks the calling thread until the operation is done; returns its result or throws its error.
  // Thread: one that is not the runtime's; in a handler it throws usage_error.
  value get() && {
    block(std::chrono::nanoseconds::max());
    return await_resume();
  }

  // Limits how long the operation may wait. With a limit of zero it is only tried.
  limited_awaiting<Operation> timeout(std::chrono::nanoseconds at_most) && {
    return limited_awaiting<Operation>(std::move(*this)).timeout(at_most);
  }
  // Ends the wait when a stop is requested.
  limited_awaiting<Operation> stop(std::stop_token token) && {
    return limited_awaiting<Operation>(std::move(*this)).stop(std::move(token));
  }
  template <class Refused = void>
  limited_awaiting<Operation> timeout(std::chrono::nanoseconds) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited_awaiting<Operation> stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 protected:
  // Returns false if the coroutine need not suspend: the operation was done at once, or the call is
  // cancelled.
  bool suspend(tasks::coroutine& suspended) noexcept {
    who = &suspended;
    tasks::async_call& in = *suspended.in;
    if (in.cancelled) {
      ended = tasks::outcome::cancelled;
      return false;
    }
    Operation::wake = &wake_coroutine;
    // Another thread may end the wait as soon as it has begun. The coroutine resumes after this
    // turn all the same.
    enlist(suspended);
    if constexpr (requires { Operation::begin_in(suspended); }) Operation::begin_in(suspended);
    if (Operation::start()) {
      if constexpr (waits_for_lock<Operation>) ask_for_search(in);
      return true;
    }
    if (++in.at_once < at_once_max) [[likely]] {
      forget();
      return false;
    }
    in.at_once = 0;
    yields_ = true;
    in.at->go_on_later(*this);
    return true;
  }
  // Any thread.
  void end_early(tasks::outcome how) noexcept {
    if (!Operation::withdraw()) return;
    if (sleeper_ == nullptr) return over(how);
    ended = how;
    sleeper_->notify();
  }
  void block(std::chrono::nanoseconds at_most) {
    tasks::check_may_block(Operation::name);
    thread_sleep here;
    sleeper_ = &here;
    Operation::wake = &wake_thread;
    if (!Operation::start() || here.wait_for(at_most)) return;
    if (Operation::withdraw()) {
      ended = tasks::outcome::timed_out;
    } else {
      here.wait_for(std::chrono::nanoseconds::max());
    }
  }
  bool yields() const noexcept { return yields_; }
  void check() const {
    if (ended != tasks::outcome::arrived) [[unlikely]]
      throw_ended(*this, Operation::name);
  }

 private:
  friend awaiting_access;
  // A search for circles of waits, unless one is due. The wait may be over by now, but not the
  // turn.
  void ask_for_search(tasks::async_call& in) const noexcept {
    // order: relaxed (both)  the search that is asked for sees it
    if (!tasks::locks_are_awaited.load(std::memory_order_relaxed)) [[unlikely]]
      tasks::locks_are_awaited.store(true, std::memory_order_relaxed);
    // order: relaxed  a search that begins now comes too early for this wait; the thread that parks
    // the actor asks again
    if (!limited && !in.at->searched_soon->load(std::memory_order_relaxed)) [[unlikely]]
      in.at->search_soon(in.actor);
  }

  // So many operations in a row may be done at once; then other actors get a turn.
  static constexpr std::uint8_t at_once_max = 128;

  static void wake_coroutine(waiter& self) noexcept {
    static_cast<awaiting&>(static_cast<Operation&>(self)).over(tasks::outcome::arrived);
  }
  static void wake_thread(waiter& self) noexcept {
    static_cast<awaiting&>(static_cast<Operation&>(self)).sleeper_->notify();
  }
  static const char* act_on(sched::message* base, [[maybe_unused]] void* object,
                            sched::message_act act) {
    if (act == sched::message_act::describe) return Operation::name;
    auto& self = static_cast<awaiting&>(*static_cast<suspension*>(base));
    if constexpr (waits_for_lock<Operation>) {
      if (act == sched::message_act::holder)
        return self.Operation::find_holder(*static_cast<tasks::lock_holder*>(object)) ? "held"
                                                                                      : nullptr;
    }
    if (act != sched::message_act::detach) return arrive(self, act);
    // a coroutine that yields has what it wanted
    return !self.yields_ && self.Operation::withdraw() ? "detached" : nullptr;
  }

  thread_sleep* sleeper_ = nullptr;  // not null if a plain thread waits
  bool yields_ = false;
};

// The same with a time limit, a stop token, or both.
template <class Operation>
class [[nodiscard]] limited_awaiting : protected awaiting<Operation>, private tasks::timer {
  using base = awaiting<Operation>;

 public:
  using value = typename base::value;

  explicit limited_awaiting(base&& unlimited) noexcept
      : base(std::move(unlimited)), timer(&on_time) {}
  limited_awaiting(limited_awaiting&& other) noexcept
      : base(static_cast<base&&>(other)),
        timer(&on_time),
        at_most_(other.at_most_),
        stop_(std::move(other.stop_)) {}

  limited_awaiting timeout(std::chrono::nanoseconds at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited_awaiting stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }

  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaits) {
    return suspend(awaits.promise());
  }
  value await_resume() {
    on_stop_.reset();  // waits for a callback that is running
    if (armed_) tasks::cancel(*this->who->in->at->clock, *this);
    return base::await_resume();
  }
  value get() && {
    if (is_stopped()) base::check();
    on_stop_.emplace(stop_, end_it{*this});
    base::block(at_most_);
    on_stop_.reset();
    return base::await_resume();
  }

 private:
  struct end_it {
    limited_awaiting& self;
    void operator()() const noexcept { self.end_early(tasks::outcome::cancelled); }
  };
  static void on_time(timer& self) noexcept {
    static_cast<limited_awaiting&>(self).end_early(tasks::outcome::timed_out);
  }
  bool is_stopped() noexcept {
    if (!stop_.stop_requested()) return false;
    this->ended = tasks::outcome::cancelled;
    return true;
  }
  bool suspend(tasks::coroutine& suspended) {
    if (is_stopped()) return false;
    this->limited = at_most_ != std::chrono::nanoseconds::max() || stop_.stop_possible();
    if (!base::suspend(suspended)) return false;
    if (base::yields()) return true;
    // From here on the wait may be over at any time, but the coroutine resumes after this turn.
    try {
      if (at_most_ != std::chrono::nanoseconds::max()) {
        tasks::timers& clock = *suspended.in->at->clock;
        tasks::arm(clock, *this, tasks::due_in(clock, at_most_));
        armed_ = true;
      }
      if (stop_.stop_possible()) on_stop_.emplace(stop_, end_it{*this});
    } catch (...) {
      if (!Operation::withdraw()) return true;  // it is done already
      this->forget();
      if (armed_) tasks::cancel(*suspended.in->at->clock, *this);
      armed_ = false;
      throw;
    }
    return true;
  }

  std::chrono::nanoseconds at_most_ = std::chrono::nanoseconds::max();
  std::stop_token stop_;
  std::optional<std::stop_callback<end_it>> on_stop_;
  bool armed_ = false;
};

}  // namespace troupe::sync
