// async_call: one call of a coroutine handler, or one spawned task, with all the coroutines that it
// awaits.
//
// An async call belongs to an actor. Its coroutines run only in turns of that actor: two threads
// never touch the same member, except for the end of a suspension. A loop resumes the coroutines,
// or the awaiting coroutine resumes its child, nested up to a limit: the depth of the stack does
// not depend on the number of awaited coroutines. For the library's own use; users meet task,
// future and the functions that return an awaitable.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <bit>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <utility>

#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/running/call_host.hpp"

namespace troupe::tasks {

class async_call;
class call_context;
struct shared_state;
struct suspension;

// The raw content of a std::source_location. As a default argument, a std::source_location would be
// an object of its own in the frame of each co_await.
using source_line = decltype(__builtin_source_location());
inline std::source_location location_of(source_line where) noexcept {
  return std::bit_cast<std::source_location>(where);
}

// The base of each coroutine promise of the library.
struct coroutine {
  std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<coroutine>::from_promise(*this);
  }
  async_call* call = nullptr;  // set at the first resumption
  // The source line of the last co_await. Before the coroutine begins, the member instead points to
  // an object: the object whose method the coroutine is; or the first argument, if it is of a
  // class; or the object that the tasks passed to the coroutine hold here. By it `spawn` recognizes
  // an object that is a part of the running actor.
  source_line awaits_at = nullptr;
  void remember_object(const volatile void* object) noexcept {
    awaits_at = reinterpret_cast<source_line>(const_cast<const void*>(object));
  }
  const void* object_before_start() const noexcept { return awaits_at; }
  // The coroutine that awaits this one, perhaps with a tag; 0 for the root of the async call.
  std::uintptr_t parent = 0;
  // tag: it runs within its parent's co_await. `parent` becomes 0 when it ends, which the parent
  // checks
  static constexpr std::uintptr_t nested = 1;
  // tag: of the root of a sleeping task; the word then holds no parent
  // (src/actor/spawned/spawned.cpp)
  static constexpr std::uintptr_t result = 2;
  static constexpr std::uintptr_t tags = nested | result;
  static std::uintptr_t as_parent(coroutine& outer) noexcept {
    return reinterpret_cast<std::uintptr_t>(&outer);
  }
  coroutine* waiting_parent() const noexcept {
    return (parent & tags) != 0 ? nullptr : reinterpret_cast<coroutine*>(parent);
  }

  // Call it at the coroutine's final suspension.
  void end() noexcept;
};

// One call or task with its coroutines. Thread: the one that runs the actor's turn.
// Invariants
//   S1  A call is listed, or is a branch of a group, or neither.
//   S2  A branch begins once, and is paused only after it has begun.
class async_call {
 public:
  explicit async_call(sched::message& calls) noexcept : call(calls) {}
  async_call(const async_call&) = delete;
  async_call& operator=(const async_call&) = delete;

  // Makes the coroutine the next one that the loop resumes.
  void push(coroutine& ready) noexcept {
    check_alone();
    ready_ = &ready;
  }

  // Starts the root coroutine; returns when it, and each coroutine that it makes ready, has
  // suspended, or the async call is `done`.
  TROUPE_INLINE void start(coroutine& root) noexcept {
    root.call = this;
    busy = true;
    root.handle().resume();
    busy = false;
    loop();
  }

  // Resumes the ready coroutine and those that become ready by that, until all have suspended.
  // Returns false if none was ready.
  TROUPE_INLINE bool loop() noexcept {
    if (ready_ == nullptr) return false;
    busy = true;
    while (coroutine* ready = std::exchange(ready_, nullptr)) ready->handle().resume();
    busy = false;
    return true;
  }

  // Ends the current wait, if it can be ended, and each later wait at once: each throws
  // `cancelled`. The caller must run the loop afterwards.
  void cancel() noexcept;

  // Runs the async call to its end on the calling thread, at the actor's end. Waits for events that
  // are on their way; later events meet a closed mailbox. Returns false if the async call awaits an
  // awaitable that is not the library's, so that it never ends.
  bool finish_now() noexcept;

  // Whether it has suspended in an await of foreign code, which the library cannot end.
  bool waits_for_foreign() const noexcept;
  bool has_ready() const noexcept { return ready_ != nullptr; }

  // Checks that at most one coroutine is ready or waits: of coroutines that await each other, only
  // the innermost runs, is ready or waits.
  void check_alone() const noexcept {
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
    if (ready_ != nullptr || awaited != nullptr) std::abort();
#endif
  }

  sched::message& call;  // the message that it handles; gets `complete` when the async call is done
  void* actor = nullptr;  // a cell
  const tasks::call_host* at = nullptr;
  suspension* awaited = nullptr;    // the suspension of its innermost coroutine
  shared_state* answers = nullptr;  // the ask that made this call, if an ask did
  // limits the call; null for no limit. The starter of the call keeps it (call_context.hpp)
  call_context* context = nullptr;
  // links the async calls of a reentrant actor, the branches of a group, calls that are parked
  // (src/actor/system/waiting_lists.hpp), or side calls that were given up (side_call.hpp)
  base::list_link<async_call> link;
  std::atomic<std::uintptr_t>* urgent_end =
      nullptr;  // of its actor (src/actor/mailbox/activation.hpp)
  bool done = false, cancelled = false;
  bool busy = false;  // in its loop, which then resumes each coroutine that becomes ready

  // It is in the list of parked calls, or of side calls that were given up.
  bool is_listed() const noexcept { return standing_ == standing::listed; }
  void set_listed(bool on) noexcept { become(on ? standing::listed : standing::usual); }
  // A branch whose task runs, or has run.
  bool has_begun() const noexcept {
    return standing_ == standing::begun || standing_ == standing::paused;
  }
  // A branch that may run, and does not yet.
  bool is_held() const noexcept {
    return standing_ == standing::postponed || standing_ == standing::paused;
  }
  // Of a branch that has not begun: the branch begins later.
  void postpone() noexcept { become(standing::postponed); }
  void begin_or_continue() noexcept { become(standing::begun); }
  // group::pause_beside_or_hold
  void pause() noexcept { become(has_begun() ? standing::paused : standing::postponed); }

  // The maximum number of nested children that run within their parents' co_await (task.hpp). The
  // limit keeps the stack small for any number of awaited coroutines.
  static constexpr std::uint8_t nested_max = 32;
  std::uint8_t nested = 0;

  // Counts an await that may need no suspension. Returns false if the call has spent its budget:
  // its coroutine must then let other actors run, and refill the budget
  // (docs/protocols/ready_awaits.md).
  TROUPE_INLINE bool spend(std::uint8_t units = 1) noexcept { return spend_of(ready_left_, units); }
  // The same for an await that starts a coroutine. A simulation does the same as real threads do:
  // the first steps of that coroutine nearly always run before any other code.
  TROUPE_INLINE bool spend_start() noexcept { return spend_of(starts_left_, 1); }
  std::uint8_t ready_left() const noexcept { return ready_left_; }
  // Refills the budget: other actors have had their turn, or will have it before the coroutine
  // continues.
  void refill() noexcept {
    ready_left_ = at->ready_units;
    starts_left_ = ready_units_of_threads;
  }
  // For a branch that begins: if its first await is ready, it lets no other branch run; therefore
  // the branches behind it do not begin (when_any).
  void refill_at_start() noexcept {
    refill();
    ++ready_left_;
  }

 private:
  TROUPE_INLINE static bool spend_of(std::uint8_t& left, std::uint8_t units) noexcept {
    if (left <= units) [[unlikely]]
      return false;
    left = static_cast<std::uint8_t>(left - units);
    return true;
  }
  enum class standing : std::uint8_t { usual, listed, postponed, begun, paused };
  TROUPE_INLINE void become(standing to) noexcept {
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
    check_standing(standing_, to);
#endif
    standing_ = to;
  }
  static void check_standing(standing from, standing to) noexcept;

  std::uint8_t ready_left_ = ready_units_of_threads, starts_left_ = ready_units_of_threads;
  standing standing_ = standing::usual;
  coroutine* ready_ = nullptr;
};

TROUPE_INLINE void coroutine::end() noexcept {
  if ((parent & nested) != 0) {
    parent = 0;
  } else if (coroutine* const awaiting = waiting_parent()) {
    call->push(*awaiting);
  } else {
    call->done = true;
  }
}

// Suspends the coroutine until the other actors of its worker have had their turn, and refills.
// Returns false where it cannot: its call is cancelled, or memory is out. Called when spend() has
// returned false.
[[gnu::cold]] bool let_others_run(coroutine& awaiting) noexcept;
// The same for a coroutine that has not begun. If its call is cancelled meanwhile, it never begins:
// its parent finds no result. Therefore it cannot take a value that would then be lost.
[[gnu::cold]] bool start_behind_others(coroutine& awaiting) noexcept;

// For an await_suspend whose result is already there: counts the await. Returns true if the
// coroutine suspends, because other actors must run first.
TROUPE_INLINE bool suspend_ready(coroutine& awaiting) noexcept {
  return !awaiting.call->spend() && let_others_run(awaiting);
}

// The holder of a lock for which another call waits.
struct lock_holder {
  // the coroutine, which may have ended since; null if it is not known, or if the holder is a plain
  // thread
  const coroutine* by = nullptr;
  sched::message::handler method = nullptr;
  source_line at = nullptr;  // where the holder took the lock
  bool is_child = false;     // it holds no lock: the wait is for its end (scope_group.hpp)
};

// Set once a call has waited for a lock, or for a child of a scope: from then on a search for
// cycles also looks for holders.
inline constinit std::atomic<bool> locks_are_awaited{false};

// Call it in the turn, beside the beginning of each wait that names a holder
// (suspension::for_lock): without it no search finds a cycle through this wait. The wait may be
// over by now. `limited`: as of the suspension.
inline void search_for_holder(async_call& call, bool limited) noexcept {
  // order: relaxed (both)  the search that is asked for sees it
  if (!locks_are_awaited.load(std::memory_order_relaxed)) [[unlikely]]
    locks_are_awaited.store(true, std::memory_order_relaxed);
  // order: relaxed  a search that begins now comes too early for this wait; the thread that parks
  // the actor asks again
  if (!limited && !call.at->searched_soon->load(std::memory_order_relaxed)) [[unlikely]]
    call.at->search_soon(call.actor);
}

// How a wait ended.
enum class outcome : std::uint8_t { arrived, timed_out, cancelled, deadlock };

// One suspension of a coroutine until an event outside of its async call.
//
// It ends exactly once: by that event, or by a party that detaches it from the event's source (a
// timeout, a stop token, the actor's end). These compete at the source, and the winner calls
// over(). The suspension then travels to its actor as an urgent message, and the coroutine
// continues.
struct suspension : sched::message {
  using sched::message::message;
  suspension(const suspension&) = delete;
  suspension& operator=(const suspension&) = delete;

  // The coroutine is about to suspend. Called in the turn, before any other thread can see the
  // wait.
  void begin(coroutine& suspended) noexcept {
    waiter = &suspended;
    enlist(suspended);
  }
  // The second half of begin(), for a wait that had to name its coroutine before it could end.
  void enlist(coroutine& suspended) noexcept {
    suspended.call->check_alone();
    suspended.call->awaited = this;
  }
  // The coroutine does not suspend after all.
  void forget() noexcept { waiter->call->awaited = nullptr; }
  // Called in the turn after the end of the wait: makes the coroutine ready.
  void end() noexcept {
    forget();
    waiter->call->refill();
    waiter->call->push(*waiter);
  }
  // Called by the winner, on any thread. The caller must not touch the suspension afterwards.
  void over(outcome how) noexcept {
    ended = how;
    async_call& call = *waiter->call;
    call.at->go_on(call.actor, *this);
  }

  // The body of `act` for most suspensions, except for `describe` and `detach`.
  static const char* arrive(suspension& self, sched::message_act act) noexcept;

  coroutine* waiter = nullptr;
  outcome ended = outcome::arrived;
  bool excused = false;  // does not count as a stall when the program is out of work
  bool limited = false;  // a time limit or a stop token may end it
  // another call may have to release a lock first, or to end (message_act::holder)
  bool for_lock = false;
  // its event, or the event of a branch, cannot be undone (message_act::pause)
  bool is_final : 1 = false;
  // only foreign code can end it, at any time
  bool is_foreign : 1 = false;
  // The runtime has ended, and the party that ended the wait no longer uses this object.
  std::atomic<bool> reclaimable{false};
  // how many branches beside it run now (group::pause); until then its event does not happen
  std::uint16_t pauses = 0;
  // the number of the last search for deadlocks that reached this suspension, by which a search
  // recognizes it (src/actor/waits/deadlock_search.cpp)
  std::uint32_t seen_in = 0;
  // when a look at all waits saw this one first (src/actor/waits/long_waits.hpp); 0: none has
  std::uint32_t first_seen = 0;
};

inline bool async_call::waits_for_foreign() const noexcept {
  if (awaited != nullptr) return awaited->is_foreign;
  return has_begun() && !done && !busy && ready_ == nullptr;
}

}  // namespace troupe::tasks
