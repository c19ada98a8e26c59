// runtime_state: the state that tasks, actors and jobs share of one runtime: plain data that each
// turn and each job reads.
//
// It lives as long as refs to the runtime's actors, and so longer than the runtime.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/slot_space.hpp"
#include "sched/runtime_host.hpp"
#include "task/running/counts.hpp"
#include "troupe/task/running/call_host.hpp"

namespace troupe::sched {
struct runnable_vtable;
}

namespace troupe::tasks {

struct actor_functions;
struct job_waits;

class runtime_state {
 public:
  explicit runtime_state(sched::runtime_host& host) noexcept : runtime(host) {}
  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;

  // The state of the actor's runtime. An actor is a slot in the runtime's slot_space, whose owner
  // is the runtime_state.
  static runtime_state& of(const void* actor) noexcept {
    return *static_cast<runtime_state*>(memory::slab::of(actor).owner);
  }

  // It is asked for nothing any more once no turn and no job runs any longer.
  sched::runtime_host& runtime;

  // The reasons to take turns off the fast path; bits, read by each turn.
  enum slow_path_flag : std::uint8_t {
    discards = 1,  // a stop: mail becomes dead letters, and jobs are dropped
    // a simulation: its turns must be the same with a trace as without one
    simulates = 2,
    traced = 8,  // a trace records each turn
    // the limits of turns are so short that a turn may end before its first look at the clock
    // (src/actor/turn/turn_limit.hpp)
    short_turns = 4,
    // messages are counted by class and handler (src/actor/counting/message_counts.hpp): `turns`
    // has a fast path of its own for that
    counts_messages = 16,
    // a flight recorder keeps each turn (src/observe/flight/recorder.hpp): `turns` does it
    records_turns = 32,
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

  call_host host{};                  // of the actors' async calls; it names the clock and the I/O
  std::int64_t began_ns = 0;         // by the runtime's clock; set before the first turn
  std::uint8_t main_lane = 0;        // main_lanes.hpp; set before the first turn
  bool is_simulated = false;         // set before the first turn, as is the next one
  bool pool_needs_run = false;       // the pool's turns run in the thread that calls run()
  std::atomic<bool> closing{false};  // no actor is woken any longer, and no job begins
  const actor_functions* actors = nullptr;        // set before the first turn
  const sched::runnable_vtable* turns = nullptr;  // of an activation; set before the first turn
  void* jobs = nullptr;                       // the runtime's job_pool (src/jobs/pool/job_pool.hpp)
  const job_waits* waits_for_jobs = nullptr;  // set before the first turn
  // counts of threads that have left this runtime or ended, or that run no turns
  mutable counts elsewhere;
};

}  // namespace troupe::tasks
