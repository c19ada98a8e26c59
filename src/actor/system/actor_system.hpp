// actor_system: the state that the actors of one runtime share: their slots, their executors, and
// where failures are reported.
//
// A cell finds its system by masking its own address (memory/slot_space.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "actor/counting/message_counts.hpp"
#include "actor/state/kept_failure.hpp"
#include "actor/state/optional_state.hpp"
#include "actor/system/actor_host.hpp"
#include "actor/system/actor_names.hpp"
#include "actor/system/consumer_table.hpp"
#include "actor/system/gate.hpp"
#include "actor/system/guard_table.hpp"
#include "actor/system/supervision_table.hpp"
#include "actor/system/waiting_lists.hpp"
#include "memory/slot_space.hpp"
#include "sched/executor.hpp"
#include "sched/stealing/worker.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::actor {

class deadlock_search;

// The memory of the failure that this thread is reporting now; null for most failures.
extern constinit thread_local const kept_memory* failures_keep;

class actor_system : public tasks::runtime_state {
 public:
  // Executor 0 is the pool, 1 the main thread; the pinned threads follow.
  static constexpr std::size_t executors_max = 1002;
  static constexpr std::uint16_t main_executor = 1;
  // Whether turns there come only while a thread is in run().
  bool needs_run(std::uint16_t executor) const noexcept {
    return executor == main_executor || (pool_needs_run && executor == 0);
  }

  actor_system(limits turn, actor_host& host, bool observed);
  ~actor_system();

  // The counts of the calling thread; null unless the runtime is observed.
  thread_counts* counts_here() const noexcept {
    return counts == nullptr ? nullptr : counts->here();
  }

  static actor_system& of(const cell& actor) noexcept {
    return static_cast<actor_system&>(runtime_state::of(&actor));
  }

  // See gate.hpp. A worker of this system's pool changes no word.
  bool enter_gate() noexcept;
  void leave() noexcept;
  class gate_guard {
   public:
    explicit gate_guard(actor_system& system) noexcept
        : system_(system), open_(system.enter_gate()) {}
    gate_guard(const gate_guard&) = delete;
    gate_guard& operator=(const gate_guard&) = delete;
    ~gate_guard() { system_.leave(); }
    bool let_in() const noexcept { return open_; }

   private:
    actor_system& system_;
    const bool open_;
  };
  void close() noexcept;

  void report(const cell* actor, message::handler method, std::exception_ptr failure) noexcept;
  // The two parts of a dead letter (mailbox/dead_letters.hpp): the first before the message is
  // destroyed, the second after it.
  void count_dead_letter() noexcept;
  void observe_dead_letter(const failed_call& where, bool observed) noexcept;
  // Of a cell that outlived its runtime (root/actor_root.hpp): the last one deletes the system.
  void drop_orphan_ref() noexcept;

  sched::executor& executor_of(const cell& actor) const noexcept {
    // order: acquire  sees the complete executor; pairs with the runtime's store of a new pinned
    // thread
    return *executors[actor.lives_on()].load(std::memory_order_acquire);
  }

  const limits turn;
  actor_host& owner;  // `runtime`, with the functions that only actors need
  // Set by the runtime before the first turn, and cleared when its observer goes.
  bool observes_dead_letters = false;
  tasks::call_host host_reentrant{};  // of reentrant actors' async calls
  tasks::call_host host_aside{};      // of their side calls (task/side_call.hpp)
  tasks::left_side_calls left;
  // of `asleep`, the async call of all tasks that sleep without an actor (spawned.hpp)
  tasks::call_host host_asleep{};
  message calls_none{nullptr};
  tasks::async_call asleep{calls_none};
  const std::unique_ptr<message_counts> counts;  // null unless the runtime is observed
  memory::slot_space slots;
  actor_names names;
  supervision_table supervised;
  guard_table guards;
  consumer_table consumers;
  waiting_lists waiting;
  std::mutex looking;       // one thread at a time looks at suspended calls (suspended.cpp)
  std::uint32_t looks = 0;  // guarded by `looking`
  // Set by the root before the first turn, and never null from then on.
  std::shared_ptr<deadlock_search> deadlocks;
  std::array<std::atomic<sched::executor*>, executors_max> executors{};
  std::atomic<std::uint64_t> dead_letters{0};
  std::atomic<std::int64_t> orphan_refs{0};
  std::mutex making_magazines;
  // guarded by `making_magazines`
  std::vector<std::unique_ptr<memory::slot_space::magazines>> magazines_of_workers;
  memory::slot_space::magazines* magazines_of_caller = nullptr;  // see caller_magazines
  base::list_link<actor_system> debugger_link;                   // src/runtime/debugger_table.cpp
  // Written often, and by several threads: in lines of their own, since all else is read in turns.
  alignas(base::line_bytes) gate entrance;
  // calls that wait without their actor
  alignas(base::line_bytes) std::atomic<std::size_t> sleepers{0};

 private:
  gate::ends how_thread_ends() const noexcept;
};

// In the actor's turn: reports its failure. The failure may refer to memory that the actor
// allocated: the returned value keeps that memory alive.
kept_failure report_own(cell& actor, message::handler method, std::exception_ptr failure) noexcept;

// The calling thread's worker if it is one of this system's pool; else null. A pool ends before its
// system does.
TROUPE_INLINE sched::worker* own_worker(const actor_system& system) noexcept {
  sched::worker* const self = sched::worker::current();
  // order: relaxed  written before the pool had workers
  return self != nullptr && self->executor == system.executors[0].load(std::memory_order_relaxed)
             ? self
             : nullptr;
}

// A worker's magazines belong to the first system that the worker runs for, its own runtime's,
// which destroys them.
struct thread_slots {
  const actor_system* system = nullptr;
  memory::slot_space::magazines* magazines = nullptr;
};
extern constinit thread_local thread_slots slots_of_thread [[gnu::tls_model("initial-exec")]];

// Makes the calling worker's magazines for this system, unless it has some. Null on other threads,
// and if memory is out.
memory::slot_space::magazines* claim_magazines(actor_system& system) noexcept;

// In this scope the calling thread is the worker of a pool without a thread: it uses the magazines
// that such threads have claimed before. The thread may outlive the system.
class caller_magazines {
 public:
  explicit caller_magazines(actor_system& system) noexcept;
  caller_magazines(const caller_magazines&) = delete;
  caller_magazines& operator=(const caller_magazines&) = delete;
  ~caller_magazines();

 private:
  actor_system& system_;
  const thread_slots before_;
};

// The magazines of the calling worker for this system's slots; null on other threads.
inline memory::slot_space::magazines* own_magazines(actor_system& system) noexcept {
  if (slots_of_thread.system == &system) [[likely]]
    return slots_of_thread.magazines;
  return claim_magazines(system);
}

// The cell's slot will be freed now.
inline void end_optional_state(cell& actor) noexcept {
  if (!has_optional_state(actor)) return;
  if (optional_state::of(actor).named) actor_system::of(actor).names.remove(id_of(actor));
  std::destroy_at(&optional_state::of(actor));
}

// For a cell that was never used, or has ended: no thread can reach it any longer.
inline void free_cell(cell& unused) noexcept {
  actor_system& system = actor_system::of(unused);
  end_optional_state(unused);
  system.slots.free(&unused, own_magazines(system));
}

}  // namespace troupe::actor
