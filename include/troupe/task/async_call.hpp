// async call: one call of a coroutine handler, or one spawned task, with all the coroutines that it
// awaits.
//
// An async call belongs to an actor: its coroutines run in turns of that actor only, so that
// nothing here but a wait's `arrived` is touched by two threads. They are resumed by a loop, or by
// who awaits them, nested to a limit: the depth of the stack does not depend on how many are
// awaited. The library's own; users meet task, future and the functions that return something to
// await.
#pragma once

#include <atomic>
#include <bit>
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::tasks {

class async_call;
class timers;
struct shared_state;
struct suspension;

// What a std::source_location is made of. As a default argument that is an object of its own in the
// frame of each co_await.
using source_line = decltype(__builtin_source_location());
inline std::source_location location_of(source_line where) noexcept {
  return std::bit_cast<std::source_location>(where);
}

// What the promise of every coroutine of ours starts with.
struct coroutine {
  std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<coroutine>::from_promise(*this);
  }
  async_call* in = nullptr;  // from the first resumption on
  // Of its last co_await. Before it begins: the object whose method it is, or its first argument,
  // if that is of a class, or what the tasks that it is given have there; so `spawn` can tell that
  // it is a part of the actor that is running.
  source_line awaits_at = nullptr;
  void remember_object(const volatile void* object) noexcept {
    awaits_at = reinterpret_cast<source_line>(const_cast<const void*>(object));
  }
  const void* object_before_start() const noexcept { return awaits_at; }
  // Who awaits it, perhaps tagged; 0: nobody, it is the root of its async call.
  std::uintptr_t parent = 0;
  // it runs within its parent's co_await, which looks whether it has ended: then it is 0
  static constexpr std::uintptr_t nested = 1;
  // of a root whose task is asleep: not a parent (src/actor/spawned/asleep.cpp)
  static constexpr std::uintptr_t result = 2;
  static constexpr std::uintptr_t tags = nested | result;
  static std::uintptr_t as_parent(coroutine& of) noexcept {
    return reinterpret_cast<std::uintptr_t>(&of);
  }
  coroutine* waiting_parent() const noexcept {
    return (parent & tags) != 0 ? nullptr : reinterpret_cast<coroutine*>(parent);
  }

  // At its final suspension.
  void end() noexcept;
};

// What an async call asks of its actor.
struct call_host {
  // The wait is over: its coroutine goes on in a turn of the actor. Any thread; takes the wait.
  void (*go_on)(void* actor, suspension& over) noexcept;
  // In a turn: the wait is over after it.
  void (*go_on_later)(suspension& over) noexcept;
  // In a turn: runs what is ready. The async call may be gone afterwards. Null: so an act ends by
  // it, and leaves no function to return to (after system calls of the coroutine's a return is a
  // branch that the processor has not foreseen).
  const char* (*resume)(async_call& of) noexcept;
  timers* clock = nullptr;
  sched::io_driver_slot* io = nullptr;
  // In a turn, when an async call begins to wait for what others do: a search for deadlocks is to
  // come, unless `searched_soon`.
  void (*search_soon)(void* actor) noexcept = nullptr;
  const std::atomic<bool>* searched_soon = nullptr;
};

class async_call {
 public:
  explicit async_call(sched::message& calls) noexcept : call(calls) {}
  async_call(const async_call&) = delete;
  async_call& operator=(const async_call&) = delete;

  // To be resumed by the loop.
  void push(coroutine& ready) noexcept {
    check_alone();
    ready_ = &ready;
  }

  // The first of its coroutines begins: until it and what becomes ready by it have suspended, or
  // `done`.
  TROUPE_INLINE void start(coroutine& root) noexcept {
    root.in = this;
    busy = true;
    root.handle().resume();
    busy = false;
    loop();
  }

  // Resumes what is ready, and what becomes so by that, until all have suspended. False when there
  // was nothing.
  TROUPE_INLINE bool loop() noexcept {
    if (ready_ == nullptr) return false;
    busy = true;
    while (coroutine* ready = std::exchange(ready_, nullptr)) ready->handle().resume();
    busy = false;
    return true;
  }

  // Ends its wait if that can be ended, and those that come later at once: each throws `cancelled`.
  // The loop is to be run afterwards.
  void cancel() noexcept;

  // At the actor's end: to the end of the async call, here and now. What is on its way is waited
  // for; what comes later meets a closed mailbox. False when it awaits something that is none of
  // ours, and so never ends.
  bool finish_now() noexcept;

  // Of coroutines that await each other only the innermost runs, is ready or waits.
  void check_alone() const noexcept {
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
    if (ready_ != nullptr || awaited != nullptr) std::abort();
#endif
  }

  sched::message& call;   // what it answers; gets `complete` when the async call is done
  void* actor = nullptr;  // a cell
  const tasks::call_host* at = nullptr;
  suspension* awaited = nullptr;    // what the innermost of its coroutines is suspended for
  shared_state* answers = nullptr;  // the ask that it was called by, if it was
  // of a reentrant actor's, or of those that are parked (src/actor/waits/waiting.hpp)
  async_call* next_call = nullptr;
  async_call** call_link = nullptr;
  std::atomic<std::uintptr_t>* urgent_end =
      nullptr;  // its actor's (src/actor/mailbox/activation.hpp)
  bool done = false, cancelled = false;
  bool busy = false;    // in its loop: what becomes ready is resumed there
  bool listed = false;  // its actor was parked for it

  // Children that run within their parents' co_await (task.hpp); so the stack does not grow with
  // how many are awaited.
  static constexpr std::uint8_t nested_max = 32;
  std::uint8_t nested = 0;
  // Operations of I/O in a row that were done at once (io/wait.hpp): so one that is never kept
  // waiting lets others in.
  std::uint8_t at_once = 0;

 private:
  coroutine* ready_ = nullptr;
};

TROUPE_INLINE void coroutine::end() noexcept {
  if ((parent & nested) != 0) {
    parent = 0;
  } else if (coroutine* const awaiting = waiting_parent()) {
    in->push(*awaiting);
  } else {
    in->done = true;
  }
}

// How a wait ended.
enum class outcome : std::uint8_t { arrived, timed_out, cancelled, deadlock };

// One suspension of a coroutine until something outside of its async call happens.
//
// Ended exactly once: by what it waits for, or by whoever detaches it from that (a timeout, a stop
// token, the actor's end): they race for it at the source, and the one that wins calls over(). Then
// it travels to its actor as an urgent message, and the coroutine goes on.
struct suspension : sched::message {
  using sched::message::message;
  suspension(const suspension&) = delete;
  suspension& operator=(const suspension&) = delete;

  // The coroutine is about to suspend. The turn only, before anybody else knows of the wait.
  void begin(coroutine& suspended) noexcept {
    who = &suspended;
    enlist(suspended);
  }
  // The second half of that: for one that had to name its coroutine before it could be over.
  void enlist(coroutine& suspended) noexcept {
    suspended.in->check_alone();
    suspended.in->awaited = this;
  }
  // The coroutine does not suspend after all.
  void forget() noexcept { who->in->awaited = nullptr; }
  // Back in the turn; the coroutine is ready.
  void end() noexcept {
    forget();
    who->in->push(*who);
  }
  // By the one who has ended it, on any thread. The wait is not to be touched afterwards.
  void over(outcome how) noexcept {
    ended = how;
    async_call& in = *who->in;
    in.at->go_on(in.actor, *this);
  }

  // What most waits' `act` does but for `describe` and `detach`.
  static const char* arrive(suspension& self, sched::message_act act) noexcept;

  coroutine* who = nullptr;
  outcome ended = outcome::arrived;
  bool excused = false;  // a program that is out of work need not explain it
  bool limited = false;  // a time or a stop token may end it
  // The runtime has ended, and whoever ended the wait is done with it.
  std::atomic<bool> reclaimable{false};
  // the last search for deadlocks that came here (src/actor/waits/deadlocks.cpp); so it is known
  // again
  std::uint32_t seen_in = 0;
};

}  // namespace troupe::tasks
