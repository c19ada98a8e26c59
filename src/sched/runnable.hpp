// runnable: the unit that the scheduler runs, for example an actor's turn or a naked procedure. The
// scheduler uses nothing else of them.
//
// A runnable is in exactly one place at a time: in a queue, running, deferred (see worker.hpp), or
// held by the thread that is about to submit it. Only the holder may touch its plain members.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::sched {

class worker;
struct runnable;

// The work that remains after a turn.
enum class after_turn : std::uint8_t {
  again,  // more work: back to the end of the queue
  quiet,  // no work now: the executor deactivates it, or defers that
  waits,  // as quiet, and ordinary mail does not wake it
  gone,   // finished: the executor disposes of it
};

constexpr bool is_quiet(after_turn after) noexcept {
  return after == after_turn::quiet || after == after_turn::waits;
}

struct runnable_vtable {
  after_turn (*run)(runnable&);
  // Makes a quiet runnable inactive. False when work has arrived since: then it goes back to the
  // queue.
  bool (*deactivate)(runnable&);
  // Whether a quiet runnable has work again. For the thread that holds it; a hint for others.
  bool (*pending)(const runnable&);
  // After a turn that returned `gone`: frees its memory. Must not run user code, since a worker
  // calls it inside its lock.
  void (*dispose)(runnable&) noexcept;
  // Drops the runnable and its work (a stop that discards).
  void (*discard)(runnable&) noexcept;
};

// The deactivation of a waiting runnable (after_turn::waits) is also deferred.
enum class run_state : std::uint8_t { elsewhere, queued, running, deactivation_deferred, waiting };

struct runnable {
  runnable* next = nullptr;  // in the queue or inbox that holds it
  // The worker whose biased lock guards this runnable; null under the other policies and elsewhere.
  std::atomic<worker*> home_worker{nullptr};
  const runnable_vtable* type = nullptr;
  std::int16_t deferred_slot = -1;  // its index among the home worker's deferred runnables, or -1
  run_state where = run_state::elsewhere;
};

inline bool is_idle(const runnable& item) noexcept {
  return item.where >= run_state::deactivation_deferred;
}

}  // namespace troupe::sched
