// system: what the actors of one runtime share: their slots, their executors, and where failures
// go.
//
// A cell finds its system by masking its own address (memory/slot_space.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "actor/lifetime/consumers.hpp"
#include "actor/lifetime/extras.hpp"
#include "actor/mailbox/guards.hpp"
#include "actor/spawned/keeping.hpp"
#include "actor/turn/counts.hpp"
#include "actor/waits/deadlocks.hpp"
#include "actor/waits/waiting.hpp"
#include "memory/slot_space.hpp"
#include "sched/executor.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/message.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

// Of a failure or a dead letter. The names are literals.
struct failed_call {
  const char* actor = "";
  const char* method = "";
  std::uint64_t id = 0;  // of the actor
  kept_memory keeps{};   // what a failure's exception refers to
};

// What the failures keep that this thread reports now; null for most.
extern constinit thread_local const kept_memory* failures_keep;

class actor_system {
 public:
  // 0 is the pool, 1 the main thread, then the pinned ones.
  static constexpr std::size_t executors_max = 1002;
  static constexpr std::uint16_t main_executor = 1;

  explicit actor_system(limits turn);
  ~actor_system();

  static actor_system& of(const cell& actor) noexcept {
    return *static_cast<actor_system*>(memory::slab::of(&actor).owner);
  }

  // The end, when no turn runs any more and nobody sends. First destroy_actors for each executor,
  // on its own thread, one after the other: objects go, in no particular order. Then destroy: cells
  // that somebody still refers to are orphans, and the system deletes itself when the last such ref
  // goes.
  void destroy_actors(std::uint16_t executor) noexcept;
  // One of them, which has not ended.
  void destroy_actor(cell& actor) noexcept;
  static void destroy(actor_system* self) noexcept;

  // Threads of anybody wake actors and drop last refs while the end begins: they do so in a visit,
  // and the end waits until no gate_guard is left. False: it has begun, and no actor is woken any
  // more.
  bool enter_gate() noexcept;
  void leave() noexcept;
  class gate_guard {
   public:
    explicit gate_guard(actor_system& of) noexcept : system_(of), open_(of.enter_gate()) {}
    gate_guard(const gate_guard&) = delete;
    gate_guard& operator=(const gate_guard&) = delete;
    ~gate_guard() { system_.leave(); }
    bool let_in() const noexcept { return open_; }

   private:
    actor_system& system_;
    const bool open_;
  };
  void close() noexcept;

  void report(const cell* actor, message::handler method, std::exception_ptr what) noexcept;
  // A dead letter. It is observed by threads of the runtime only: it may end beside all others.
  void make_dead_letter(cell& actor, message& mail, bool observed = true) noexcept;
  // The same of one that never came into its mailbox.
  void make_uncounted_dead_letter(const cell& actor, message& mail, bool observed = true) noexcept;
  // The two parts of that, before and behind the end of what is discarded.
  void count_dead_letter() noexcept;
  void observe_dead_letter(const failed_call& where, bool observed) noexcept;
  void drop_orphan_ref() noexcept;

  sched::executor& executor_of(const cell& actor) const noexcept {
    // order: acquire  sees the executor whole; pairs with the runtime's store of a new pinned
    // thread
    return *executors[actor.lives_on()].load(std::memory_order_acquire);
  }

  const limits turn;
  // What makes turns unlike most; bits, read by each turn.
  enum slow_path_flag : std::uint8_t {
    discards = 1,     // a stop: mail becomes dead letters
    chooses = 2,      // this turn takes the long way: the simulated policy changes it for each
    traced = 8,       // a trace has each of them
    short_turns = 4,  // `turn` may end before the first look at the clock would come (turn.cpp)
  };
  std::atomic<std::uint8_t> slow_path_flags{0};
  // order: relaxed  a stop need not be seen by the very next message
  bool discarding() const noexcept {
    return (slow_path_flags.load(std::memory_order_relaxed) & discards) != 0;
  }
  void discard(bool from_now_on) noexcept {
    if (from_now_on) {
      slow_path_flags.fetch_or(discards, std::memory_order_relaxed);  // order: relaxed  as above
    } else {
      // order: relaxed  as above
      slow_path_flags.fetch_and(static_cast<std::uint8_t>(~discards), std::memory_order_relaxed);
    }
  }
  tasks::call_host host{};            // of its actors' async calls
  tasks::call_host host_reentrant{};  // of those of reentrant actors
  // of `asleep`, which is the async call of all tasks that sleep without an actor (asleep.hpp)
  tasks::call_host host_asleep{};
  message calls_none{nullptr};
  tasks::async_call asleep{calls_none};
  std::atomic<std::size_t> sleepers{0};
  std::int64_t began_ns = 0;   // by its clock; set before the first turn
  std::uint8_t main_lane = 0;  // src/task/main_lanes.hpp; set before the first turn
  bool is_simulated = false;   // all turns are the main thread's; set before the first turn
  memory::slot_space slots;
  supervision_table supervised;
  guard_table guards;
  consumer_table consumers;
  void* jobs = nullptr;  // the runtime's job_pool (src/jobs/pool/job_pool.hpp)
  waiting_lists waiting;
  std::mutex looking;  // one at a time looks at what is suspended (suspended.cpp)
  deadlock_search deadlocks{*this};
  std::array<std::atomic<sched::executor*>, executors_max> executors{};
  std::atomic<std::uint64_t> dead_letters{0};
  std::atomic<bool> closing{false};  // no actor is woken any more
  std::atomic<std::uint32_t> gate_entries{0};
  std::atomic<std::int64_t> orphan_refs{0};
  mutable counts elsewhere;  // of threads that have gone on or ended, or run no turns

  // Set by the runtime, called on the thread where it happens.
  std::function<void(const failed_call& where, std::exception_ptr)> on_failure;
  std::function<void(const failed_call& where)> on_dead_letter;
  // A failure that nobody is the parent of.
  std::function<void()> on_escalated;
  // Runs a call that may block on a thread that is no worker.
  std::function<void(std::move_only_function<void()>)> run_aside;
  // Of the simulated policy: a bound for this turn. Else empty. Set before the first turn.
  std::function<unsigned(unsigned)> choose_messages;

 private:
  void wait_for_gate_entries() const noexcept;
};

// A worker's magazines belong to the first system that it works for: its own runtime's.
struct thread_slots {
  const actor_system* system = nullptr;
  memory::slot_space::magazines magazines;
};
extern constinit thread_local thread_slots slots_of_thread [[gnu::tls_model("initial-exec")]];

// Makes the calling worker's magazines this system's, if they are nobody's. Null on other threads.
memory::slot_space::magazines* claim_magazines(actor_system& system) noexcept;

// The magazines of the calling worker for this system's slots; null on other threads.
inline memory::slot_space::magazines* own_magazines(actor_system& system) noexcept {
  if (slots_of_thread.system == &system) [[likely]]
    return &slots_of_thread.magazines;
  return claim_magazines(system);
}

// Of one that has never begun, or has ended: nobody can look at it any more.
inline void free_cell(cell& unused) noexcept {
  actor_system& system = actor_system::of(unused);
  end_extras(unused);
  system.slots.free(&unused, own_magazines(system));
}

}  // namespace troupe::actor
