// waiting: the one awaitable of channels and locks. For the library's own use; users meet the
// return values of send(), receive(), lock() and the like.
//
// An object that can be awaited keeps a list of waiters under a mutex of its own. The party that
// takes a waiter out of the list decides how its wait ends: it gives a value or a lock, or it is
// the wait itself, when its time limit, its stop token or a cancelled call ends it. A wait
// therefore ends once. If its call is cancelled after it was given something, and before its
// coroutine continues, it puts that back (docs/protocols/given_up_waits.md).
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/sync/channels/waiter.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/groups/race.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::sync {

// Where a plain thread sleeps during a wait.
class thread_sleep {
 public:
  // Returns false if the time is over first.
  bool wait_for(time_span at_most) noexcept;
  // The thread may free this object as soon as the word has changed.
  void notify() noexcept;

 private:
  std::atomic<std::uint32_t> woken_{0};
};

// Throws the error of a wait that ended early. `name` names the awaited event.
[[noreturn]] void throw_ended(const tasks::suspension& ended, const char* name);

// An operation is a waiter together with the value that it brings or takes:
//   struct operation : waiter {
//     static constexpr const char* name    the awaited event, as "room in a channel"
//     bool start() noexcept                does it at once and returns false, or puts itself into a
//                                          list and returns true. From then on `wake` may be called
//     bool start(prepare) noexcept         instead of it: the same, but it calls prepare(), which
//                                          sets `wake`, before it puts itself into a list
//     bool withdraw() noexcept             takes it out of the list; false if another party did
//     T finish()                           the result, after the wait has ended; may throw
//     operation(operation&&) noexcept      only before start()
//   };
//     bool put_back() noexcept             gives back the wait's value, instead of finish();
//                                          false if that cannot be undone (a value that was sent)
//     bool pause() noexcept                if it cannot be undone: from now on it does not happen;
//                                          false if it has. Called in the turn of its actor while
//                                          its coroutine is suspended
//     void resume() noexcept               after pause(): it may happen again, or does so now
//     bool try_now() noexcept              optional, beside start(): false if it has to wait
//     void begin_in(tasks::coroutine&)     optional: the coroutine that is about to wait
//     bool is_weak() const noexcept        optional: true if the wait keeps no program alive
//     bool find_holder(tasks::lock_holder&) noexcept
//                                          only for locks: the holder; false if the wait is over
// When `wake` is called, the result is already in the operation.
template <class Operation>
concept waits_for_lock = requires(Operation operation, tasks::lock_holder found) {
  { operation.find_holder(found) }
  noexcept->std::same_as<bool>;
};

// For an operation that cannot be undone and may happen on any thread: only one of several in a
// race may happen at a time (troupe/task/groups/race.hpp):
//     void join_race(race*) noexcept          before it is in a list; null: it is in no race
//     race* joined_race() const noexcept
//     bool has_entered_race() noexcept        after it has arrived
template <class Operation>
concept waits_in_race = requires(Operation operation, tasks::race* joined) {
  operation.pause();
  operation.join_race(joined);
};

// Whether it may have been given a value that it can put back.
template <class Operation>
concept can_put_back = requires(Operation wait) {
  wait.put_back();
}
&&(!waits_in_race<Operation> || requires { requires Operation::receives; });

template <class Operation>
class limited_awaiting;
struct awaiting_access;  // for select

// The awaitable of an operation: co_await it in a coroutine, with a time limit or a stop token if
// need be; on a plain thread, get() blocks. Await it once.
//
// Thread: the operation starts at the co_await or the get(), not before. Errors: timed_out,
// cancelled (when the call is cancelled as well), and the operation's. In all of these cases the
// operation has not happened. Lifetime: an awaitable that is dropped has done nothing.
template <class Operation>
class [[nodiscard, gnu::warn_unused]] awaiting : protected Operation {
 public:
  using value = decltype(std::declval<Operation&>().finish());
  // for the branches of when_any (troupe/task/when.hpp)
  static constexpr bool puts_back = can_put_back<Operation>;

  template <class... Args>
  explicit awaiting(std::in_place_t, Args && ... args) : Operation(std::forward<Args>(args)...) {}
  awaiting(awaiting && other) noexcept : Operation(std::move(static_cast<Operation&>(other))) {}

  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  TROUPE_INLINE bool await_suspend(std::coroutine_handle<Promise> awaits) noexcept {
    return suspend(awaits.promise(), false);
  }
  TROUPE_INLINE value await_resume() {
    if (is_made_) [[unlikely]]
      check();
    return Operation::finish();
  }
  // The user may have been cancelled after the operation was done, even if that was at once.
  void take_late(tasks::coroutine & user) noexcept {
    if (!is_made_) make_wait().waiter = &user;
  }
  // The wait is over, and a coroutine that does not take its value yet has run.
  void end_wait() noexcept requires(waits_in_race<Operation>) {
    if (is_made_) leave_race();
    Operation::join_race(nullptr);
  }

  // Blocks the calling thread until the operation is done; returns its result or throws its error.
  // Thread: one that is not the runtime's; in a handler it throws usage_error.
  value get()&& {
    block(std::chrono::nanoseconds::max(), [] {});
    return await_resume();
  }

  // Limits how long the operation may wait. With a limit of zero it is only tried.
  limited_awaiting<Operation> timeout(time_span at_most)&& {
    return limited_awaiting<Operation>(std::move(*this)).timeout(at_most);
  }
  // Ends the wait when a stop is requested.
  limited_awaiting<Operation> stop(std::stop_token token)&& {
    return limited_awaiting<Operation>(std::move(*this)).stop(std::move(token));
  }
  template <class Refused = void>
  limited_awaiting<Operation> timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited_awaiting<Operation> stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 protected:
  struct wait : tasks::suspension {
    explicit wait(awaiting& awaited) noexcept : suspension(&act_on), self(&awaited) {
      for_lock = waits_for_lock<Operation>;
      is_final = requires { awaited.pause(); };
      if constexpr (requires { awaited.is_weak(); }) excused = awaited.is_weak();
    }
    awaiting& operation() noexcept { return *self; }
    awaiting* const self;
    thread_sleep* sleeper = nullptr;  // not null if a plain thread waits
    bool yields = false;
  };

  // Returns false if the coroutine need not suspend: the operation was done at once, or the call is
  // cancelled.
  TROUPE_INLINE bool suspend(tasks::coroutine & suspended, bool limited) noexcept {
    tasks::async_call& call = *suspended.call;
    if (call.cancelled) [[unlikely]] {
      end_before(tasks::outcome::cancelled);
      return false;
    }
    if constexpr (requires { Operation::begin_in(suspended); }) Operation::begin_in(suspended);
    // Another thread may end the wait as soon as it has begun. Even then the coroutine resumes
    // after this turn.
    if (begin([&]() noexcept {
          prepare(suspended, limited);
          if constexpr (waits_in_race<Operation>)
            Operation::join_race(tasks::race_around(*suspended.call));
        })) {
      call.refill();
      if constexpr (waits_for_lock<Operation>) tasks::search_for_holder(call, limited);
      return true;
    }
    if (call.spend()) [[likely]] {
      if (is_made_) wait_.constructed.forget();
      return false;
    }
    yield(suspended);
    return true;
  }
  // Any thread, once the wait has begun.
  void end_early(tasks::outcome how) noexcept {
    if (!Operation::withdraw()) return;
    if (wait_.constructed.sleeper == nullptr) return wait_.constructed.over(how);
    wait_.constructed.ended = how;
    wait_.constructed.sleeper->notify();
  }
  // Instead of the wait.
  void end_before(tasks::outcome how) noexcept { make_wait().ended = how; }
  // Calls begun() when the wait has begun.
  template <class Begun>
  void block(time_span at_most, Begun begun) {
    tasks::check_may_block(Operation::name);
    thread_sleep sleeper;
    const bool waits = begin([&]() noexcept {
      Operation::wake = &wake_thread;
      make_wait().sleeper = &sleeper;
    });
    if (!waits) return;
    begun();
    if (sleeper.wait_for(at_most)) return;
    if (Operation::withdraw()) {
      wait_.constructed.ended = tasks::outcome::timed_out;
    } else {
      sleeper.wait_for(std::chrono::nanoseconds::max());
    }
  }
  bool yields() const noexcept { return wait_.constructed.yields; }
  void forget() noexcept { wait_.constructed.forget(); }
  tasks::coroutine& suspended() const noexcept { return *wait_.constructed.waiter; }
  // After a wait. A call that was cancelled takes nothing (docs/protocols/given_up_waits.md): a
  // value that was given before the cancellation goes back.
  void check() {
    if constexpr (waits_in_race<Operation>) leave_race();
    if constexpr (requires { Operation::put_back(); }) {
      const tasks::coroutine* const user = wait_.constructed.waiter;
      if (wait_.constructed.ended == tasks::outcome::arrived && user != nullptr &&
          user->call->cancelled && Operation::put_back()) [[unlikely]]
        wait_.constructed.ended = tasks::outcome::cancelled;
    }
    if (wait_.constructed.ended != tasks::outcome::arrived) [[unlikely]]
      throw_ended(wait_.constructed, Operation::name);
  }

 private:
  friend awaiting_access;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp

  template <class Prepare>
  TROUPE_INLINE bool begin(const Prepare& prepared) noexcept {
    if constexpr (requires { Operation::start(prepared); }) {
      return Operation::start(prepared);
    } else {
      if constexpr (requires { Operation::try_now(); }) {
        if (Operation::try_now()) return false;
      }
      prepared();
      return Operation::start();
    }
  }
  TROUPE_NOINLINE void prepare(tasks::coroutine & suspended, bool limited) noexcept {
    Operation::wake = &wake_coroutine;
    wait& now = make_wait();
    now.waiter = &suspended;
    now.limited = limited;
    now.enlist(suspended);
  }
  TROUPE_NOINLINE void yield(tasks::coroutine & suspended) noexcept {
    if (!is_made_) prepare(suspended, false);
    suspended.call->refill();
    wait_.constructed.yields = true;
    suspended.call->at->go_on_later(wait_.constructed);
  }
  void leave_race() noexcept {
    tasks::race* const joined = Operation::joined_race();
    if (joined == nullptr) [[likely]]
      return;
    if (wait_.constructed.ended == tasks::outcome::arrived && Operation::has_entered_race())
      joined->leave();
    tasks::look_again(*joined);
  }

  static wait& wait_of(waiter & self) noexcept {
    return static_cast<awaiting&>(static_cast<Operation&>(self)).wait_.constructed;
  }
  static void wake_coroutine(waiter & self) noexcept {
    wait_of(self).over(tasks::outcome::arrived);
  }
  static void wake_thread(waiter & self) noexcept { wait_of(self).sleeper->notify(); }
  static const char* act_on(sched::message * base, [[maybe_unused]] void* object,
                            sched::message_act act) {
    if (act == sched::message_act::describe) return Operation::name;
    auto& now = static_cast<wait&>(*base);
    if constexpr (waits_for_lock<Operation>) {
      if (act == sched::message_act::holder)
        return now.operation().find_holder(*static_cast<tasks::lock_holder*>(object)) ? "held"
                                                                                      : nullptr;
    }
    if constexpr (requires { now.operation().pause(); }) {
      // a coroutine that lets others run has its result already
      if (act == sched::message_act::pause)
        return !now.yields && now.operation().pause() ? nullptr : "happened";
      if (act == sched::message_act::resume) {
        if (!now.yields) now.operation().resume();
        return nullptr;
      }
    }
    if (act != sched::message_act::detach) return wait::arrive(now, act);
    // a coroutine that yields has its result already
    return !now.yields && now.operation().withdraw() ? "detached" : nullptr;
  }

  // The objects that a wait needs beside its operation are made when the operation has to wait.
  // Most are done at once, and to write all this would take longer than they do.
  wait& make_wait() noexcept {
    is_made_ = true;
    return *std::construct_at(&wait_.constructed, *this);
  }
  union memory {
    memory() noexcept {}
    wait constructed;
  };
  bool is_made_ = false;
  memory wait_;
};

// The same with a time limit, a stop token, or both.
template <class Operation>
class [[nodiscard, gnu::warn_unused]] limited_awaiting : protected awaiting<Operation>,
                                                         private tasks::timer {
  using base = awaiting<Operation>;

 public:
  using value = typename base::value;
  using base::end_wait;
  using base::puts_back;
  using base::take_late;

  explicit limited_awaiting(base && unlimited) noexcept
      : base(std::move(unlimited)), timer(&on_time, tasks::timer_source::timeout) {}
  limited_awaiting(limited_awaiting && other) noexcept
      : base(static_cast<base&&>(other)),
        timer(&on_time, tasks::timer_source::timeout),
        at_most_(other.at_most_),
        stop_(std::move(other.stop_)) {}

  limited_awaiting timeout(time_span at_most)&& {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited_awaiting stop(std::stop_token token)&& {
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
    if (armed_) tasks::cancel(*base::suspended().call->at->clock, *this);
    return base::await_resume();
  }
  value get()&& {
    if (is_stopped()) base::check();
    base::block(at_most_, [this] { on_stop_.emplace(stop_, end_it{*this}); });
    on_stop_.reset();
    return base::await_resume();
  }

 private:
  struct end_it {
    limited_awaiting& self;
    void operator()() const noexcept { self.end_early(tasks::outcome::cancelled); }
  };
  static void on_time(timer & self) noexcept {
    static_cast<limited_awaiting&>(self).end_early(tasks::outcome::timed_out);
  }
  bool is_stopped() noexcept {
    if (!stop_.stop_requested()) return false;
    base::end_before(tasks::outcome::cancelled);
    return true;
  }
  bool suspend(tasks::coroutine & suspended) {
    if (is_stopped()) return false;
    const bool limited = at_most_ != std::chrono::nanoseconds::max() || stop_.stop_possible();
    if (!base::suspend(suspended, limited)) return false;
    if (base::yields()) return true;
    // From here on the wait may be over at any time, but the coroutine resumes after this turn.
    try {
      if (at_most_ != std::chrono::nanoseconds::max()) {
        tasks::timers& clock = *suspended.call->at->clock;
        tasks::arm(clock, *this, tasks::due_in(clock, at_most_));
        armed_ = true;
      }
      if (stop_.stop_possible()) on_stop_.emplace(stop_, end_it{*this});
    } catch (...) {
      if (!Operation::withdraw()) return true;  // it is done already
      base::forget();
      if (armed_) tasks::cancel(*suspended.call->at->clock, *this);
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
