// main_lanes: which thread runs the main thread's part of each runtime, so that one that waits for itself is told.
//
// A result that only run() can bring about carries the number of its runtime's lane. Before a thread blocks for such a result without
// a limit of time it looks at the lane: when nobody is in run(), and the calling thread is the one that would call it, the wait would
// never end.
// Invariants
//   L1  a result that carries a number is resolved before the runtime gives that number back.
#pragma once

#include <cstdint>

namespace troupe::tasks {

class main_lanes {
 public:
  // A number for a runtime that the calling thread has made; 0 when there are 255 runtimes already, whose results nobody looks at.
  static std::uint8_t claim() noexcept;
  static void give_back(std::uint8_t lane) noexcept;

  // The calling thread is in run() from now on, or not any more. One thread at a time.
  static void enter(std::uint8_t lane) noexcept;
  static void leave(std::uint8_t lane) noexcept;

  // Whether the calling thread is the only one that would run the lane, and does not: it is in run() just now, and somewhere in it
  // waits, or it was there last, and nobody is now. When nobody has ever called run() it is the thread that made the runtime, and other threads have a second to call run() first: that
  // long it blocks, or until `over` says that the wait has ended.
  static bool waits_for_itself(std::uint8_t lane, bool (*over)(const void* context), const void* context) noexcept;
};

}  // namespace troupe::tasks
