// placement_stages: the stages of a placement's loop, of its node's part in the cluster, and of its
// departure.
//
// Threads: loop_stage under the placement's mutex; the others belong to the loop.
// Invariants
//   G1  A loop that is over does not begin again, and only a loop that is active pauses.
//   G2  A node joins once, owns shards only after it has joined, and does nothing once it has left.
//   G3  A departure is announced only after it has begun, and is never taken back.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::cluster {

class loop_stage {
 public:
  bool is_over() const noexcept { return stage_ == stage::over; }
  // Returns true if the caller has to start the loop.
  bool begin() noexcept {
    if (stage_ != stage::idle) return false;
    stage_ = stage::active;
    return true;
  }
  // Nothing is due until begin(). A loop that is over stays so.
  void pause() noexcept {
    TROUPE_INVARIANT(stage_ != stage::idle, "G1");
    if (stage_ == stage::active) stage_ = stage::idle;
  }
  // Whatever it was doing.
  void end() noexcept { stage_ = stage::over; }

 private:
  enum class stage : std::uint8_t { idle, active, over };
  stage stage_ = stage::idle;
};

class member_stage {
 public:
  bool joins() const noexcept { return stage_ == stage::joins; }
  bool runs() const noexcept { return stage_ == stage::runs; }
  bool has_left() const noexcept { return stage_ == stage::has_left; }

  // A renewal was stored. If shards are free, the first one only announces the node, and the next
  // one takes them.
  void note_renewal(bool wants_shards) noexcept {
    TROUPE_INVARIANT(stage_ != stage::has_left, "G2");
    stage_ = stage_ == stage::joins && wants_shards ? stage::takes_first : stage::runs;
  }
  // A renewal has failed, of a node that has joined.
  void note_failure() noexcept {
    TROUPE_INVARIANT(stage_ == stage::takes_first || stage_ == stage::runs, "G2");
    stage_ = stage::runs;
  }
  void leave() noexcept {
    TROUPE_INVARIANT(stage_ != stage::has_left, "G2");
    stage_ = stage::has_left;
  }

 private:
  enum class stage : std::uint8_t { joins, takes_first, runs, has_left };
  stage stage_ = stage::joins;
};

class departure {
 public:
  bool has_begun() const noexcept { return stage_ != stage::none; }
  // The store has been informed.
  bool is_announced() const noexcept { return stage_ == stage::announced; }

  void begin() noexcept {
    if (stage_ == stage::none) stage_ = stage::begun;
  }
  // A renewal was stored that did or did not announce it.
  void note_renewal(bool announced) noexcept {
    TROUPE_INVARIANT(announced ? has_begun() : !is_announced(), "G3");
    if (announced) stage_ = stage::announced;
  }

 private:
  enum class stage : std::uint8_t { none, begun, announced };
  stage stage_ = stage::none;
};

}  // namespace troupe::cluster
