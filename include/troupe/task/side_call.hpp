// side_call: a coroutine that runs beside the coroutine that uses it, in the turns of the same
// actor, and gives a value from time to time (async_generator) or once (a task). For the library's
// own use.
//
// A branch of when_all (when.hpp) lives inside one co_await; a side call outlives many of them. Its
// user may stop to wait for it, by a time limit or because the user is cancelled: the side call
// keeps waiting for its event, and its next value is ready when the user asks again. No value is
// ever lost.
//
// Thread: the turns of one actor, but for drop(), which any thread may call.
// Invariants
//   A1  a side call is `pending` from the moment it suspends in a co_await until it gives something
//       or ends. In all other states no thread but its user's touches it.
//   A2  while a side call is pending, either a `side_wait` waits for it, or it holds its actor; in
//       a side_crowd it always does.
//   A3  while a side call is pending it has a reference to its context (call_context.hpp).
//   A4  who gave up a pending side call (drop) never touches it again: the turn in which its wait
//       ends frees it; at the actor's end, the thread that discards the end of its wait; at the
//       runtime's end, `left_side_calls`.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>

#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::tasks {

class side_call;
class side_crowd;
class turn_of_others;

// The suspension of a coroutine that waits until one of several side calls is ready.
class side_wait : public suspension {
 public:
  side_wait() noexcept : suspension(&act_on) {}
  // The suspension as such a wait; null for other suspensions.
  static const side_wait* of(const suspension& wait) noexcept {
    return wait.act == &act_on ? static_cast<const side_wait*>(&wait) : nullptr;
  }
  const side_call* first() const noexcept { return first_; }
  bool is_empty() const noexcept { return first_ == nullptr; }

  // Adds a pending side call, before the coroutine suspends.
  void add(side_call& call) noexcept;
  // The coroutine suspends until a side call is ready that was added.
  void suspend_in(coroutine& awaiting) noexcept;
  // In the turn: one of the side calls is ready. Returns the call that must be resumed, if any.
  async_call* ready() noexcept;
  // The side calls no longer wait for each other's user.
  void forget_all() noexcept;

 protected:
  // The coroutine takes the side call's value as soon as it continues.
  bool takes_ = false;
  // It is a side_crowd: side calls stay in it while no coroutine waits, and beyond the end of a
  // wait.
  bool keeps_ = false;

 private:
  friend side_call;
  friend side_crowd;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  static const char* act_on(sched::message*, void*, sched::message_act);
  static const char* handle(suspension& base) noexcept;
  // Called in the turn. True if the wait can end now; false if its end is on its way as a message.
  bool disarm() noexcept;
  // Of a side_crowd only, and defined there. The side call is ready, and leaves the crowd.
  void let_leave(side_call& call) noexcept;
  // A side call has left. Returns the call that must be resumed, if any.
  async_call* crowd_ready() noexcept;
  // The side call gives up its reference to the crowd.
  void drop_crowd() noexcept;
  // The user has given up the crowd, and with it this side call, which gives up its reference.
  void drop_abandoned() noexcept;
  side_call* first_ = nullptr;
  side_call* starts_ = nullptr;  // it is on its way as a message, which lets this side call run
};

// The same with a time limit or a stop token, or both. When a limit ends the wait, the side calls
// remain as they are.
class limited_side_wait final : public side_wait, public timer {
 public:
  limited_side_wait() noexcept : timer(&on_time, timer_source::timeout) {}
  // Suspends `user` until the side call is ready or the limit is over. False if it need not wait.
  // may_run: false if others have to run before the side call does.
  bool suspend_for(side_call& call, coroutine& user, std::chrono::nanoseconds at_most,
                   const std::stop_token& stop, bool may_run);
  // For a wait of several side calls: to be called last, after suspend_in(). Throws
  // std::system_error.
  void limit(std::chrono::nanoseconds at_most, const std::stop_token& stop);
  bool disarm() noexcept;

 private:
  struct on_stop {
    limited_side_wait& self;
    void operator()() const noexcept { self.end_early(outcome::cancelled); }
  };
  static void on_time(timer& self) noexcept;
  void end_early(outcome how) noexcept;

  std::optional<std::stop_callback<on_stop>> stop_;
  std::atomic<bool> sent_{false};
  bool armed_ = false;
};

// The pending side calls of one runtime that their users gave up. Thread: any.
class left_side_calls {
 public:
  // Marks it as given up and adds it, if it is still pending. False: the caller frees it.
  bool add(side_call& call) noexcept;
  // True if it was here, and is now the caller's to free.
  bool remove(side_call& call) noexcept;
  // At the runtime's end, when no turn runs any longer: ends them all.
  void end_all() noexcept;

 private:
  // Takes one of them; null if there is none.
  side_call* take() noexcept;
  std::mutex mutex_;
  base::intrusive_list<async_call, &async_call::link> all_;
};

class side_call : public async_call {
 public:
  // `gone` frees the coroutine, and with it this object. The coroutine is at no co_await then.
  explicit side_call(coroutine& root, void (*gone)(side_call&) noexcept) noexcept
      : async_call(own_wait_), root_(root), gone_(gone) {
    own_wait_.takes_ = true;
    root.call = this;
    busy = true;  // but while it is pending
  }

  // Whether there is something for the user to take: a value that was not taken, or the end.
  bool is_ready() const noexcept {
    const state now = seen();
    return now == state::given || now == state::ended || (now == state::idle && done);
  }
  bool is_pending() const noexcept { return seen() == state::pending; }
  // It gives nothing any more. To be asked when it is ready.
  bool has_ended() const noexcept { return done && given == nullptr; }
  // Lets the coroutine run inside the co_await of `user`, if it waits for nothing and its user has
  // taken its last value. Returns is_ready(). Throws usage_error if it is pending in another actor.
  bool advance(coroutine& user);
  // The same for a user that takes the value at once, with take(). Most calls come here, and each
  // store would cost a cycle: fields that stay the same are compared, not stored.
  bool advance_and_take(coroutine& user) { return advance_and_take(user, root_.handle()); }
  // As above, for a caller that has the coroutine's handle, `root`.
  TROUPE_INLINE bool advance_and_take(coroutine& user, std::coroutine_handle<> root) {
    const async_call& outer = *user.call;
    if (actor != outer.actor || user_at_ != outer.at || user_nested_ != outer.nested ||
        context != outer.context) [[unlikely]] {
      if (!prepare(outer)) return advance_slowly(user);
    }
    root.resume();
    if (given != nullptr) [[likely]]
      return true;
    return run_on();
  }
  // Instead of advance_and_take(), when others have to run first: a coroutine that would run does
  // so in a later turn. Refills the budget of the user's call.
  [[gnu::cold]] bool advance_later(coroutine& user) {
    user.call->refill();
    return advance_slowly(user);
  }
  // The same instead of advance().
  [[gnu::cold]] bool advance_later_and_keep(coroutine& user) {
    return is_ready() || advance_later(user);
  }
  // After an advance() that was true: the user has taken the value.
  void taken() noexcept {
    at_.store(state::idle, std::memory_order_relaxed);  // order: relaxed  it is the user's
  }
  // After a wait of the call: if the call is cancelled, its value stays here, and this returns
  // true.
  bool keep_if_cancelled(const async_call& user) noexcept {
    if (!user.cancelled) [[likely]]
      return false;
    keep();
    return true;
  }
  // Suspends `user` until this side call, which is pending, is ready. Returns false if the user is
  // cancelled; own_wait() then reports this.
  bool wait(coroutine& user) noexcept;
  side_wait& own_wait() noexcept { return own_wait_; }
  coroutine& root() const noexcept { return root_; }
  // The user has seen that it is done.
  void see_end() noexcept {
    if (user_nested_ != no_user) user_nested_ = no_user;  // threads share one that is at its end
    at_.store(state::ended, std::memory_order_relaxed);   // order: relaxed  it is the user's
  }

  // It has given a value that its user has not taken, because the user's wait was given up.
  bool keeps_value() const noexcept { return given != nullptr && seen() == state::given; }
  // It is pending, and its user does something else meanwhile.
  void hold() noexcept;

  // The user gives the side call up: frees it now, or as soon as its wait has ended. Thread: any.
  // In its actor's turn a wait is cancelled; elsewhere it ends by itself, or at the runtime's end.
  void drop() noexcept;

  // The coroutine of another call that waits for this call, which is a branch or a side call; null
  // if there is none.
  static coroutine* awaits(const async_call& call) noexcept;
  // The call at the end of that chain.
  static async_call& outermost(async_call& inner) noexcept;
  // The call as a side call; null for other calls.
  static side_call* of(async_call& call) noexcept {
    return call.at != nullptr && call.at->resume == &resume_side ? static_cast<side_call*>(&call)
                                                                 : nullptr;
  }
  const side_call* next_waited() const noexcept { return next_waited_; }
  // The resume function of such calls (call_host).
  static const char* resume_side(async_call& call) noexcept;
  // `over`, whose message arrived, resumes `call`, which is a side call or a branch within one.
  // Where its user is a branch that would be held, the message is kept until that one may run:
  // the value of the side call could be lost with its user (docs/protocols/given_up_waits.md).
  static const char* run_for_user(suspension& over, async_call& call,
                                  const char* (*resume)(suspension& over) noexcept) noexcept;

  // Not null exactly while the coroutine is suspended because it has given this.
  void* given = nullptr;
  // In a side_crowd: the number that its user gave it.
  static constexpr std::size_t no_place = SIZE_MAX;
  std::size_t place = no_place;

 private:
  friend side_wait;
  friend side_crowd;
  friend left_side_calls;
  friend struct suspension;
  friend class turn_of_others;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  // idle: its user has taken its last value, or takes it at once, and resumes it; given: it has a
  // value, or has ended, and its user has not seen that; left: pending, and given up by its user;
  // ended: its user has seen the end.
  enum class state : std::uint8_t { idle, pending, given, left, ended };
  state seen() const noexcept {
    // order: acquire  the writes of the turn in which the wait ended; pairs with
    // resume_once/acq_rel
    return at_.load(std::memory_order_acquire);
  }
  // It runs for this call: in its actor, within its deadline.
  void use(const async_call& outer) noexcept {
    actor = outer.actor;
    at = outer.at->aside;
    context = outer.context;
  }
  // To be called before it runs for another call than last time, or when it may not be idle.
  // Returns false if it cannot run now.
  [[gnu::cold]] bool prepare(const async_call& outer) noexcept;
  [[gnu::cold]] bool advance_slowly(coroutine& user);
  bool run_on() noexcept;
  [[gnu::cold]] void keep() noexcept;
  void run_in_context() noexcept;
  bool has_something() const noexcept { return given != nullptr || done; }
  void become_pending() noexcept;
  async_call* resume_once() noexcept;
  void release() noexcept;
  void leave_crowd() noexcept;
  void free() noexcept;
  void cancel_here() noexcept;
  void start_queued() noexcept;
  void discard_queued() noexcept;
  // Ends a side call whose wait's end was discarded, if its user has given it up.
  static bool end_discarded(suspension& over) noexcept;

  coroutine& root_;
  void (*const gone_)(side_call&) noexcept;
  side_wait own_wait_;
  side_wait* waiter_ = nullptr;
  side_call* next_waited_ = nullptr;      // of the same wait
  side_call* previous_waited_ = nullptr;  // of the same side_crowd
  std::atomic<state> at_{state::idle};
  bool holds_ = false;  // a ref to its actor
  // The host of its user's call, and how deep that is nested, while this side call is idle.
  // `no_user` in all other states; no call is nested so deep, and one comparison checks both.
  static constexpr std::uint8_t no_user = 255;
  std::uint8_t user_nested_ = no_user;
  const call_host* user_at_ = nullptr;
};

}  // namespace troupe::tasks
