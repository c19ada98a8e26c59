// main_lanes: which thread runs the main thread's part of each runtime, in order to detect a thread
// which waits for itself.
//
// A result that needs run() carries the number of its runtime's lane. A thread waits for itself
// when it blocks for such a result without a time limit, while no thread is in run() and it is the
// thread that would call run(). It also does so if the awaited result waits in turn for such a
// result: the search for deadlocks finds that (docs/protocols/deadlocks.md).
// A result that carries a number is resolved before the runtime gives that number back, except one
// of a ref that has outlived its runtime: no thread waits long for that.
// Invariants
//   L2  a lane names the blocked thread until that thread continues, or another thread enters
//       run().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::tasks {

class runtime_state;

class main_lanes {
 public:
  // A number for a runtime that the calling thread has made; 0 when there are 255 runtimes already:
  // then no wait for its results is checked.
  static std::uint8_t claim() noexcept;
  static void give_back(std::uint8_t lane) noexcept;

  // How the lane's runtime looks for deadlocks.
  struct search {
    // on a thread that is in no turn
    void (*now)(runtime_state& runtime) noexcept = nullptr;
    // on any thread: the runtime's timer does it
    void (*soon)(runtime_state& runtime) noexcept = nullptr;
    runtime_state* runtime = nullptr;
  };
  // Neither function of the search before is called any longer when this returns.
  static void set_search(std::uint8_t lane, const search& how) noexcept;
  // Looks for deadlocks in each runtime: at once, or within 100 ms.
  static void search_all() noexcept;
  static void search_all_soon() noexcept;

  // The calling thread enters or leaves run(). One thread at a time.
  static void enter(std::uint8_t lane) noexcept;
  static void leave(std::uint8_t lane) noexcept;

  // The calling thread's number in lanes; 0 when it has neither made a runtime nor called run().
  static std::uint64_t this_thread() noexcept;
  // Whether the lane names that thread: the thread is in run(), or was the last one there, or it
  // made the runtime and no thread has been in run() since.
  static bool belongs_to(std::uint8_t lane, std::uint64_t thread) noexcept;
  // The same, and the thread is in run() at this instant.
  static bool is_run_by(std::uint8_t lane, std::uint64_t thread) noexcept;
  // The address that represents the lane in a search for deadlocks; null for lane 0.
  static const void* known_by(std::uint8_t lane) noexcept;
  static void for_each_of(std::uint64_t thread, void* context,
                          void (*look)(void* context, const void* lane));

  // Blocks, at most for the time that another thread has to call run(). True when the calling
  // thread is the only one that would run the lane, and does not.
  static bool waits_for_itself(std::uint8_t lane) noexcept;

  // How long another thread has to call run() before a waiting thread is taken for the one that
  // would call it. Tests change it.
  static std::chrono::nanoseconds time_to_call_run() noexcept;
  static void set_time_to_call_run(std::chrono::nanoseconds time) noexcept;

  // A thread that runs a job may close a cycle by its wait when all searches have been: it asks
  // for another one after this time, then after twice, four times, ... as long.
  static constexpr std::chrono::nanoseconds time_to_search = std::chrono::milliseconds(100);
  static constexpr std::chrono::nanoseconds longest_to_search = std::chrono::hours(1);
};

}  // namespace troupe::tasks
