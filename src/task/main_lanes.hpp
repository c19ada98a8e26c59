// main_lanes: which thread runs the main thread's part of each runtime, so that one that waits for
// itself is told.
//
// A result that only run() can bring about carries the number of its runtime's lane. A thread that
// blocks for such a result without a limit of time, while nobody is in run() and it is the thread
// that would call it, waits for itself. So it does if what it waits for waits in its turn for such
// a result: the search for deadlocks finds that (docs/protocols/deadlocks.md). Invariants
//   L1  a result that carries a number is resolved before the runtime gives that number back.
//   L2  a lane names the blocked thread until that thread goes on, or another thread enters run().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::tasks {

class main_lanes {
 public:
  // A number for a runtime that the calling thread has made; 0 when there are 255 runtimes already,
  // whose results nobody looks at.
  static std::uint8_t claim() noexcept;
  static void give_back(std::uint8_t lane) noexcept;

  // What looks for deadlocks in the lane's runtime, here and now. Called on threads that are in no
  // turn, until the next call of this has returned.
  static void set_search(std::uint8_t lane, void (*search)(void* context) noexcept,
                         void* context) noexcept;
  // Looks for deadlocks in each runtime.
  static void search_all() noexcept;

  // The calling thread is in run() from now on, or not any more. One thread at a time.
  static void enter(std::uint8_t lane) noexcept;
  static void leave(std::uint8_t lane) noexcept;

  // The calling thread, as lanes name it; 0 when it has neither made a runtime nor called run().
  static std::uint64_t this_thread() noexcept;
  // Whether the lane names that thread: it is in run(), or was there last, or made the runtime, and
  // nobody else was in run() since.
  static bool belongs_to(std::uint8_t lane, std::uint64_t thread) noexcept;
  // The same, and it is in run() at this instant.
  static bool is_run_by(std::uint8_t lane, std::uint64_t thread) noexcept;
  // What the lane is known by, to who looks for deadlocks; null for lane 0.
  static const void* known_by(std::uint8_t lane) noexcept;
  static void for_each_of(std::uint64_t thread, void* context,
                          void (*look)(void* context, const void* lane));

  // Blocks for as long as another thread has to call run(), at most. Whether the calling thread is
  // the only one that would run the lane, and does not.
  static bool waits_for_itself(std::uint8_t lane) noexcept;

  // How long another thread has to call run() before a thread that waits for it is taken for the
  // one that would. Tests change it.
  static std::chrono::nanoseconds time_to_call_run() noexcept;
  static void set_time_to_call_run(std::chrono::nanoseconds time) noexcept;
};

}  // namespace troupe::tasks
