// shared_state: the state that a promise and its future share. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "troupe/memory/block_pool.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/result.hpp"

namespace troupe::tasks {

// The party that is notified of the result, once, on the thread that resolves.
struct observer {
  void (*resolved)(observer&) noexcept;
};

// An observer that, when it is notified, may resolve further states or run user code that does. Its
// `resolved` must call tell_nested.
struct nested_observer : observer {
  nested_observer* next = nullptr;
};
// Calls `act` at once, unless 64 such calls are already nested on this thread. In that case the
// innermost of them makes the call when it has returned, in order of arrival. Without the limit, a
// chain of any length would need a stack of any size.
void tell_nested(nested_observer& listener, void (*act)(observer&) noexcept) noexcept;

// Part of an ask, and of each other wait whose result depends on a known actor or job. It records
// which call waits for which, so that a cycle is found (docs/protocols/deadlocks.md).
struct shared_state;
struct ask_link {
  // Written in the asker's turns, or by the thread that has ended the wait; a hint for others.
  // Invariant W1: an ask that was refused stays refused.
  enum class wait : std::uint8_t {
    none,
    waits,     // an async call is suspended for it without a limit
    given_up,  // a timeout, a stop token or the end of the asker has ended the wait
    refused,   // as a deadlock: a handler that has not begun does not run
  };
  // Whether an async call asked, and an actor that was active then.
  enum class origin : std::uint8_t { outside, call, call_to_active };
  enum class subject : std::uint8_t { answer, object, permit, job };

  ask_link() = default;
  ask_link(const ask_link&) = delete;
  ask_link& operator=(const ask_link&) = delete;
  ~ask_link();
  // Whether the ask may close a cycle of waits. If false, throw_if_deadlock would find nothing.
  bool may_close_cycle() const noexcept {
    return by_call() && (asker == asked || (parent != nullptr && from == origin::call_to_active));
  }
  // the actor whose turn asked, if an async call asked and its actor handles no messages meanwhile
  const void* asker = nullptr;
  const void* asked = nullptr;  // the actor that answers or whose mailbox is full; or the job
  sched::message::handler method = nullptr;  // null for a job
  // of a job: its name; else the context in which the ask was made, by a counted reference
  const void* name_or_context = nullptr;
  // the ask that the asker's async call answers, by a counted reference, as long as this ask is not
  // done. Guarded by the lock
  shared_state* parent = nullptr;
  // the state of the future that the handler returned; counted, set once
  std::atomic<shared_state*> forwarded{nullptr};
  source_line at = nullptr;  // the source line that awaits the ask
  subject kind = subject::answer;
  origin from = origin::outside;
  // how many ordinary methods asked in a row before this ask, up to passed_max
  std::uint8_t passed = 0;
  static constexpr std::uint8_t passed_max = 250;
  // its handler has a span of its own, in the context (actor/call.hpp)
  bool has_span = false;
  // as shared_state's, until the handler has returned a future, which other threads may resolve
  std::atomic<std::uint8_t> main_lane{0};
  std::atomic<wait> stage{wait::none};
  // held by a thread that reads or drops the `parent` of another thread's ask
  mutable std::atomic<bool> locked{false};

  const char* name() const noexcept { return static_cast<const char*>(name_or_context); }
  call_context* context() const noexcept {  // only of an ask
    return static_cast<call_context*>(const_cast<void*>(name_or_context));
  }

  bool by_call() const noexcept { return from != origin::outside; }
  // order: relaxed (all)  hints for other threads
  bool is_waited_for() const noexcept {
    return stage.load(std::memory_order_relaxed) == wait::waits;
  }
  bool is_given_up() const noexcept {
    return stage.load(std::memory_order_relaxed) >= wait::given_up;
  }
  bool is_refused() const noexcept {
    return stage.load(std::memory_order_relaxed) == wait::refused;  // order: relaxed  as above
  }

  void lock() const noexcept;
  // order: release  hands over the guarded data; pairs with lock/acquire
  void unlock() const noexcept { locked.store(false, std::memory_order_release); }
};

// The word between a resolver and a receiver, with all that both need to find each other. Thread:
// any. Invariants: src/task/one_shot.hpp.
struct shared_state {
  explicit shared_state(bool (*free_self)(shared_state&, bool early) noexcept) noexcept
      : free(free_self) {}
  shared_state(const shared_state&) = delete;
  shared_state& operator=(const shared_state&) = delete;

  // These functions are described in src/task/one_shot.hpp.
  // order: acquire  as there
  bool resolved() const noexcept { return word.load(std::memory_order_acquire) == done; }
  bool attach(observer& waiting) noexcept;
  bool detach(observer& waiting) noexcept;
  // Registers a receiver, which will be notified of the result. Called before another thread can
  // see the receiver.
  // order: relaxed  the way by which the taker gets the state publishes it
  void take() noexcept { word.store(0, std::memory_order_relaxed); }
  // Whether no receiver is left. A hint for the resolver.
  // order: relaxed  a hint
  bool left() const noexcept { return word.load(std::memory_order_relaxed) == untaken; }
  // notifies the observer, if any; the resolver does not touch the state afterwards
  void resolve() noexcept;
  void leave() noexcept {  // called by the receiver
    // order: acquire  as drop_ref
    const bool last = resolved() && refs.load(std::memory_order_acquire) == 1;
    last ? static_cast<void>(free(*this, false)) : leave_early();
  }
  void leave_early() noexcept;

  // The resolver and the receiver share one reference; the last of the two drops it.
  void add_ref() noexcept;
  void drop_ref() noexcept;  // frees the state with the last reference
  void be_done() noexcept;   // drops the shared reference

  // Blocks the calling thread until the state is resolved. Returns false if the time is over first.
  // Without a time limit it throws usage_error if only run() on this very thread can resolve the
  // state, and deadlock if the state depends on such a result.
  bool wait(std::chrono::nanoseconds at_most);

  static constexpr std::uintptr_t done = 1, untaken = 2;
  std::atomic<std::uintptr_t> word{untaken};
  std::atomic<std::uint32_t> refs{1};
  // the work that resolves it may not have begun: a receiver that leaves early asks `free`
  bool queued = false;
  bool marked = false;  // for `free`'s own use
  // not 0 if only the thread that is in run() can resolve it (src/task/running/main_lanes.hpp)
  std::uint8_t main_lane = 0;
  // Frees the state. With `early`, only if the work that would have resolved it will not begin any
  // more, or can run without it; returns false and does nothing if that work has begun.
  bool (*const free)(shared_state&, bool early) noexcept;
  ask_link* asked = nullptr;  // not null for an ask
};

inline ask_link::~ask_link() {
  if (parent != nullptr) parent->drop_ref();
  if (name_or_context != nullptr && kind != subject::job) [[unlikely]]
    drop_context(*context());
  // order: acquire  as the refs of the object that it counts
  if (shared_state* const source = forwarded.load(std::memory_order_acquire)) source->drop_ref();
}

// The identity of the calling thread as a runner of jobs, for the search for deadlocks; null for
// threads that run no jobs.
extern constinit thread_local const void* job_thread;
// A thread that is blocked for a state without a time limit. The thread runs jobs, or it has made a
// runtime or called run().
struct blocked_thread {
  const void* job_thread;  // null if it runs no jobs
  // the thread as lanes name it (src/task/running/main_lanes.hpp), once other threads have had the
  // time to call run(); 0 before
  std::uint64_t main_thread;
  std::uint64_t number;  // of this wait; later waits have higher numbers
  const shared_state& waits_for;
};
// Calls `look` for each blocked thread; none of them continues during the call. Returns the number
// of the newest wait so far.
std::uint64_t for_each_blocked(void* context, void (*look)(void* context, const blocked_thread&));
// Ends that wait with a `deadlock` that has this text. Returns false if the wait has ended or is
// already ending.
bool refuse_blocked(std::uint64_t number, std::string&& text) noexcept;
// The lane of a state that only the thread in run() can resolve; 0 for other states.
std::uint8_t lane_of(const shared_state& state) noexcept;

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

// The state of a result that depends on a known actor or job, with its link.
template <class U>
struct ask_state final : state_of<U> {
  ask_state() noexcept : state_of<U>(&free_this) { this->asked = &link; }
  static bool free_this(shared_state& self, bool) noexcept {
    auto& typed = static_cast<ask_state&>(self);
    typed.~ask_state();
    memory::deallocate(&typed, sizeof(ask_state));
    return true;
  }
  ask_link link;
};

}  // namespace troupe::tasks
