// writer_stages: stages that the log's thread, its callers and a fatal signal's handler share.
//
// Invariants
//   G1  One thread at a time writes lines, and none begins to after a crash: the handler of the
//       signal then writes them alone.
//   G2  The writing thread is started once, and its end comes once.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::log {

// Thread: begin_write() and end_write() under the output mutex; the others any.
class crash_gate {
 public:
  // Returns false after a crash. The caller calls end_write() in either case.
  bool begin_write() noexcept {
    // order: relaxed  guarded by the output mutex
    TROUPE_INVARIANT(!writes_.load(std::memory_order_relaxed), "G1");
    // order: seq_cst (both)  either this sees that the handler has begun, or the handler sees the
    // write; pairs with crash and is_writing
    writes_.store(true);
    return !crashed_.load();
  }
  // order: seq_cst  pairs with is_writing
  void end_write() noexcept { writes_.store(false); }

  // In the handler of a fatal signal.
  // order: seq_cst (both)  pairs with begin_write
  void crash() noexcept { crashed_.store(true); }
  bool is_writing() const noexcept { return writes_.load(); }
  // order: relaxed  after a crash the lines are the signal handler's to write
  bool has_crashed() const noexcept { return crashed_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> writes_{false}, crashed_{false};
};

// Under the mutex of the buffers.
class thread_stage {
 public:
  bool has_begun() const noexcept { return stage_ != stage::none; }
  bool has_ended() const noexcept { return stage_ == stage::ended; }
  void begin() noexcept {
    TROUPE_INVARIANT(stage_ == stage::none, "G2");
    stage_ = stage::runs;
  }
  void end() noexcept {
    TROUPE_INVARIANT(stage_ == stage::runs, "G2");
    stage_ = stage::ended;
  }

 private:
  enum class stage : std::uint8_t { none, runs, ended };
  stage stage_ = stage::none;
};

// Where lines go.
enum class sink : std::uint8_t { regular_file, other_file, callback };

}  // namespace troupe::log
