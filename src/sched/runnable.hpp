// runnable: what the scheduler runs. An actor's turn and a naked procedure are runnables; the
// scheduler knows nothing else of them.
//
// A runnable is at one place at a time: in one queue, running, deferred (see worker.hpp), or with
// whoever is about to submit it. Whoever holds it in that sense may touch its plain members.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::sched {

class worker;
struct runnable;

// What a turn leaves behind.
enum class after_turn : std::uint8_t {
  again,  // more to do: back to the end of the queue
  quiet,  // nothing to do for now: the executor deactivates it, or lets it defer their deactivation
  waits,  // the same, and ordinary mail does not wake it
  gone,   // finished: the executor disposes of it
};

constexpr bool is_quiet(after_turn after) noexcept {
  return after == after_turn::quiet || after == after_turn::waits;
}

struct runnable_vtable {
  after_turn (*run)(runnable&);
  // Lets a quiet runnable go inactive. False when work came in between: then it goes back to the
  // queue.
  bool (*deactivate)(runnable&);
  // Whether work came to a quiet runnable. Any thread that holds it; a hint for others.
  bool (*pending)(const runnable&);
  // After a turn that returned `gone`: frees its memory, and runs nobody's code: a worker is inside
  // its lock.
  void (*dispose)(runnable&) noexcept;
  // Throws the work away, and the runnable with it (a stop that discards).
  void (*discard)(runnable&) noexcept;
};

// A waiting one (after_turn::waits) defers its deactivation, too.
enum class run_state : std::uint8_t { elsewhere, queued, running, deactivation_deferred, waiting };

struct runnable {
  runnable* next = nullptr;  // of the queue or inbox that it is in
  // The worker whose biased lock guards this runnable; null under the other policies and elsewhere.
  std::atomic<worker*> home_worker{nullptr};
  const runnable_vtable* type = nullptr;
  std::int16_t deferred_slot = -1;  // where the home worker remembers it, or -1
  run_state where = run_state::elsewhere;
};

inline bool is_idle(const runnable& item) noexcept {
  return item.where >= run_state::deactivation_deferred;
}

}  // namespace troupe::sched
