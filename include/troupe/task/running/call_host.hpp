// call_host: the services of its actor and its runtime to an async call. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::tasks {

class async_call;
class left_side_calls;
class timers;
struct suspension;

// How many units of ready awaits a call has until it lets others run (async_call::spend). In a
// simulation the seed chooses it.
inline constexpr std::uint8_t ready_units_of_threads = 128;

// The functions and services by which an async call uses its actor.
struct call_host {
  // The wait is over: its coroutine continues in a later turn of the actor. Takes ownership of the
  // wait. Thread: any.
  void (*go_on)(void* actor, suspension& over) noexcept;
  // The same for a wait that is over at once, such as yield(): the coroutine continues in the
  // actor's next turn. Called in a turn.
  void (*go_on_later)(suspension& over) noexcept;
  // Runs the ready coroutines, in a turn. The async call may be destroyed afterwards. Always
  // returns null: an `act` can end by a tail call of it, which leaves no function to return to
  // (after system calls of a coroutine, the processor would mispredict that return).
  const char* (*resume)(async_call& call) noexcept;
  timers* clock = nullptr;
  sched::io_driver_slot* io = nullptr;
  // Requests a search for deadlocks, in a turn in which an async call begins to wait for others.
  // Not needed while `searched_soon` is set.
  void (*search_soon)(void* actor) noexcept = nullptr;
  const std::atomic<bool>* searched_soon = nullptr;
  // The same for the side calls of such a call (side_call.hpp), and those that were given up.
  const call_host* aside = nullptr;
  left_side_calls* left = nullptr;
  // Which of so many cases of a select happens; null: not decided by a simulation.
  std::uint32_t (*choose_case)(void* actor, std::uint32_t count) noexcept = nullptr;
  std::uint8_t ready_units = ready_units_of_threads;
  // Of side calls, and of branches of groups within them.
  bool is_aside = false;
  // Of branches of groups, and of side calls: another call waits for such a call, or takes from it.
  bool is_part = false;
};

}  // namespace troupe::tasks
