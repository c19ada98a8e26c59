// exemplars: for each bucket of a histogram the last value whose call is in a trace that is
// recorded, with that trace, in which an operator finds the reason of a slow value.
//
// Threads: any. Invariants
//   X1  `last` of a bucket is read and written by the thread that has set `is_busy`. A thread that
//       finds it set leaves the bucket alone: no thread waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "observe/numbers/number.hpp"

namespace troupe::observe {

// Sets all but the bucket and the value, and returns true if the calling thread runs in a trace
// that is recorded. Null while no spans are recorded (src/task/traces/spans.cpp).
using trace_reader = bool (*)(exemplar& to) noexcept;
extern constinit std::atomic<trace_reader> reads_trace;

class exemplars {
 public:
  static constexpr std::size_t buckets_max = 32;

  exemplars() = default;
  exemplars(const exemplars&) = delete;
  exemplars& operator=(const exemplars&) = delete;
  ~exemplars();

  // order: relaxed  a thread may see a change a little late
  static bool are_taken() noexcept {
    return reads_trace.load(std::memory_order_relaxed) != nullptr;
  }
  // A value of this bucket. Does nothing if it is in no trace, or memory is out.
  void note(std::size_t bucket, double value) noexcept;
  // In the order of buckets.
  std::vector<exemplar> get() const;

 private:
  struct slot {
    std::atomic<bool> is_busy{false};
    bool is_set = false;
    exemplar last;
  };
  using slots = std::array<slot, buckets_max>;
  slots* make() noexcept;

  // Null until the first exemplar: most histograms have none.
  std::atomic<slots*> slots_{nullptr};
};

}  // namespace troupe::observe
