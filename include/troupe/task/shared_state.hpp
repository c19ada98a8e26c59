// shared_state: what a promise and its future have in common. The library's own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "troupe/memory/block_pool.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/result.hpp"

namespace troupe::tasks {

// Who is told, once, on the thread that resolves.
struct observer {
  void (*resolved)(observer&) noexcept;
};

// One that resolves others in its turn, or calls who may. `resolved` is to call tell_nested.
struct nested_observer : observer {
  nested_observer* next = nullptr;
};
// Calls `act` at once, unless 64 such calls are under way on this thread, each in the one before: a
// chain of any length would need a stack of any size. Then the innermost of them calls it when it
// has returned, in the order in which they came.
void tell_nested(nested_observer& one, void (*act)(observer&) noexcept) noexcept;

// Of an ask, and of what else has one who must act before it is resolved: who waits for whom, so
// that a circle is found (docs/protocols/deadlocks.md).
struct shared_state;
struct ask_link {
  enum class of : std::uint8_t { answer, object, room, job };

  ask_link() = default;
  ask_link(const ask_link&) = delete;
  ask_link& operator=(const ask_link&) = delete;
  ~ask_link();
  // Else check_circle would find nothing.
  bool may_close_circle() const noexcept {
    return by_turn && (asker == asked || (parent != nullptr && callee_active));
  }
  // the actor whose turn asked, if that is an async call and keeps its messages waiting
  const void* asker = nullptr;
  const void* asked = nullptr;  // the actor that answers, or has the mailbox; or the job
  sched::message::handler method = nullptr;  // of a job: null
  const char* name = nullptr;                // of a job
  // the ask that the asker's async call answers; counted, while this one is not done. Under the
  // lock
  shared_state* parent = nullptr;
  // what its handler has returned the future of; counted, set once
  std::atomic<shared_state*> forwarded{nullptr};
  source_line at = nullptr;  // where it is awaited
  of kind = of::answer;
  bool by_turn = false;  // an async call asked
  // so many ordinary methods in a row asked before this; no more than passed_max
  std::uint8_t passed = 0;
  static constexpr std::uint8_t passed_max = 250;
  bool callee_active = false;  // when it was asked the callee was not inactive
  // as shared_state's, until its handler has returned a future, which others may resolve
  std::atomic<std::uint8_t> main_lane{0};
  std::atomic<bool> waited{false};  // an async call is suspended for it, with no limit
  // a timeout, a stop token or the end of the asker has ended the wait for it
  std::atomic<bool> given_up{false};
  // who looks at `parent` of an ask that is not his own, or drops it
  mutable std::atomic<bool> locked{false};

  void lock() const noexcept;
  // order: release  hands over what the lock guards; pairs with lock/acquire
  void unlock() const noexcept { locked.store(false, std::memory_order_release); }
};

// Throws deadlock when the async call that asked, and is about to wait, would wait for itself, as
// far as a few links tell (src/actor/turn/async_calls.cpp).
void check_circle(const ask_link& of);

struct shared_state {
  explicit shared_state(bool (*free_self)(shared_state&, bool early) noexcept) noexcept
      : free(free_self) {}
  shared_state(const shared_state&) = delete;
  shared_state& operator=(const shared_state&) = delete;

  // src/task/one_shot.hpp says what these do.
  // order: acquire  as there
  bool resolved() const noexcept { return word.load(std::memory_order_acquire) == done; }
  bool attach(observer& waiting) noexcept;
  bool detach(observer& waiting) noexcept;
  // There is a taker, who is about to be told of the result. Nobody else knows of it yet.
  // order: relaxed  how the taker comes to know publishes it
  void take() noexcept { word.store(0, std::memory_order_relaxed); }
  // Nobody is left to take it. A hint for the resolver.
  // order: relaxed  a hint
  bool left() const noexcept { return word.load(std::memory_order_relaxed) == untaken; }
  void resolve() noexcept;  // tells the observer, if there is one; the resolver's last touch
  void leave() noexcept {   // the taker's
    // order: acquire  as drop_ref
    const bool last = resolved() && refs.load(std::memory_order_acquire) == 1;
    last ? static_cast<void>(free(*this, false)) : leave_early();
  }
  void leave_early() noexcept;

  // The resolver and the taker have one together, which whoever is the last of them drops.
  void add_ref() noexcept;
  void drop_ref() noexcept;  // frees it with the last one
  void be_done() noexcept;   // drops theirs

  // Blocks the calling thread until it is resolved. False when that did not come about in time.
  // Throws usage_error when it waits without a limit for what only run() on this very thread can
  // resolve, and deadlock when that waits for such a thing in its turn.
  bool wait(std::chrono::nanoseconds at_most);

  static constexpr std::uintptr_t done = 1, untaken = 2;
  std::atomic<std::uintptr_t> word{untaken};
  std::atomic<std::uint32_t> refs{1};
  bool queued = false;  // what resolves it may not have begun: a taker who leaves asks `free`
  bool marked = false;  // what `free` wants to know
  // nobody but who is in run() can resolve it (src/task/main_lanes.hpp)
  std::uint8_t main_lane = 0;
  // Early: only if what would have resolved it does not begin any more, or goes on without it.
  // False, and nothing done, if it has begun.
  bool (*const free)(shared_state&, bool early) noexcept;
  ask_link* asked = nullptr;  // of an ask
};

inline ask_link::~ask_link() {
  if (parent != nullptr) parent->drop_ref();
  // order: acquire  as the refs of what it counts
  if (shared_state* const source = forwarded.load(std::memory_order_acquire)) source->drop_ref();
}

// The calling thread runs jobs: what these are known by, for who looks for deadlocks; null for
// other threads.
extern constinit thread_local const void* job_thread;
// A thread that runs jobs, or has made a runtime or called run(), while it is blocked for a state
// without a limit of time.
struct blocked_thread {
  const void* job_thread;  // null: it runs none
  // as lanes name it (src/task/main_lanes.hpp), once others have had the time to call run(); else 0
  std::uint64_t main_thread;
  std::uint64_t number;  // of this wait; a later one has a higher number
  const shared_state& waits_for;
};
// They stay so meanwhile. The number of the newest wait that there was.
std::uint64_t for_each_blocked(void* context, void (*look)(void* context, const blocked_thread&));
// Ends that wait by a `deadlock` with this text. False when it has ended, or its end is on the way.
bool refuse_blocked(std::uint64_t number, std::string&& text) noexcept;
// Of a state that only who is in run() can resolve; else 0.
std::uint8_t lane_of(const shared_state& of) noexcept;

template <class T>
struct state_of : shared_state {
  explicit state_of(bool (*free_self)(shared_state&, bool early) noexcept = &free_this) noexcept
      : shared_state(free_self) {}

  static state_of& make() { return *::new (memory::allocate(sizeof(state_of))) state_of; }
  static bool free_this(shared_state& self, bool) noexcept {
    auto& typed = static_cast<state_of&>(self);
    typed.~state_of();
    memory::deallocate(&typed, sizeof(state_of));
    return true;
  }

  result_of<T> result;
};

}  // namespace troupe::tasks
