// running: the work of each thread right now: an actor's turn, a posted procedure, jobs, or nothing
// of a runtime's. For the layers above, and for messages that explain why a stop takes so long.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "sched/runnable.hpp"
#include "task/running/counts.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::tasks {

class async_call;
class call_context;

// The state of one thread, which alone writes it. Other threads read the atomic members, as a
// snapshot.
struct running_state {
  std::atomic<void*> actor{nullptr};  // a cell; null outside of turns
  std::atomic<const runtime_state*> runtime{nullptr};
  std::atomic<sched::message::handler> method{nullptr};
  // the procedure's name, when its kind alone does not identify it
  std::atomic<const char*> name{nullptr};
  // the actor's mail is handled off the fast path (src/actor/turn/turn_limit.hpp); a stop also sets
  // it
  std::atomic<bool> unusual{false};
  std::atomic<bool> in_procedure{false};  // the thread runs a posted procedure, or jobs
  bool listed = false;                    // in the list of all threads (running.cpp)
  std::atomic<int> system_thread{0};      // the thread's number in the system (gettid)
  // parts of work begun off the fast path: resumptions, posted procedures, and the like. Counted
  // only in a runtime that is observed; a reader compares two counts to see whether a part is still
  // the same.
  std::atomic<std::uint64_t> begun{0};
  sched::runnable* active = nullptr;   // of the turn: the actor's activation
  async_call* running_call = nullptr;  // the call whose coroutine runs
  // the context of the branch, the ordinary handler or the function that runs; null: the call's
  // context
  call_context* context = nullptr;
  sched::message* yielded = nullptr;  // suspensions that end right after this turn
  counts own;                         // of `runtime`
  void* counted = nullptr;  // the thread's actor::thread_counts of `runtime`; null: not known yet
  unsigned worker = 0;      // the thread's number in its pool, from 1 on; 0: no worker
  base::list_link<running_state> link;

  TROUPE_INLINE void begin_part() noexcept {
    // order: relaxed (both)  a snapshot for readers; no other thread writes
    begun.store(begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};
extern constinit thread_local running_state running_of_thread [[gnu::tls_model("initial-exec")]];
// Not for the body of a coroutine: it may resume on another thread.
TROUPE_INLINE running_state& running_here() noexcept { return running_of_thread; }

// In a turn: sets the call whose coroutines run from now on, or null; returns the one before.
inline async_call* exchange_running(async_call* call) noexcept {
  return std::exchange(running_here().running_call, call);
}
// The same for a turn that begins with this call, which `method` handles: the failures, waits
// and times of the turn belong to that method.
inline async_call* resume_running(async_call& call, sched::message::handler method) noexcept {
  // order: relaxed  for running_handlers, a snapshot
  running_here().method.store(method, std::memory_order_relaxed);
  return exchange_running(&call);
}
// The call whose coroutines run on the calling thread; null if none does.
inline async_call* running_call() noexcept { return running_here().running_call; }

// From now on the calling thread runs turns of this runtime. The thread stays in the list until it
// ends.
void enter_runtime(running_state& of_thread, const runtime_state& runtime) noexcept;
// The runtime ends: threads that ran its turns forget it.
void leave_runtime(const runtime_state& runtime) noexcept;

// The list of the threads that have entered a runtime, for a debugger
// (src/runtime/debugger_table.hpp).
const void* list_of_threads() noexcept;

// Marks the calling thread as inside a posted procedure of this runtime, or inside other work that
// is no actor's turn, whose name `describes` returns.
class inside_procedure {
 public:
  explicit inside_procedure(const runtime_state& runtime,
                            sched::message::handler describes = nullptr) noexcept;
  ~inside_procedure();
  inside_procedure(const inside_procedure&) = delete;
  inside_procedure& operator=(const inside_procedure&) = delete;
};

// Whether the calling thread is in a handler, a constructor or a posted procedure.
bool is_running() noexcept;
// The same, for this runtime only.
bool is_running(const runtime_state& runtime) noexcept;

// The runtime of the running handler or procedure if it is simulated; else null. Thread: any.
const runtime_state* simulation_here() noexcept;

// The time of day, in nanoseconds since 1970. In a simulated program its virtual time, which begins
// at simulated_start_s: the behaviour must not depend on when it is repeated. Any thread.
inline constexpr std::int64_t simulated_start_s = 1'700'000'000;
std::int64_t wall_now_ns() noexcept;

// A stop discards queued work: from now on the turns that run check for it before each message.
void notice_stop(const runtime_state& runtime) noexcept;

// How many turns are suspended. Exact when no turn runs.
std::int64_t suspended_turns(const runtime_state& runtime) noexcept;

// Calls `look` with the counts of each thread for this runtime. Workers of the pool are numbered
// from 1; all other threads are 0, possibly in several calls.
void for_each_count(const runtime_state& runtime,
                    const std::function<void(unsigned worker, const counts& worker_counts)>& look);
void count_elsewhere(runtime_state& runtime, counted counter, std::int64_t n) noexcept;
inline void count(runtime_state& runtime, counted counter, std::int64_t n = 1) noexcept {
  running_state& state = running_here();
  // order: relaxed  the thread's own
  if (state.runtime.load(std::memory_order_relaxed) != &runtime) [[unlikely]]
    return count_elsewhere(runtime, counter, n);
  state.own.add(counter, n);
}

// The work that a thread of the runtime runs, as a snapshot.
struct running_work {
  sched::message::handler method;  // null: nothing of the runtime's, and `actor` is also null
  const char* name;                // may be null
  const void* actor;               // null: no actor's; else it may have ended by now
  bool is_posted;                  // a posted procedure
  unsigned worker;                 // as running_state's, like the next two
  std::uint64_t begun;
  int system_thread;
  // an address in the thread's thread-local storage, which the C library places at the upper end of
  // the memory of its stack, except for the main thread
  const void* storage;
};
void for_each_thread(const runtime_state& runtime,
                     const std::function<void(const running_work& work)>& look);
// Only those that run something.
void for_each_running(const runtime_state& runtime,
                      const std::function<void(const running_work& work)>& look);

}  // namespace troupe::tasks
