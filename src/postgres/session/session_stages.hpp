// session_stages: the stages of a session's connection, and of the cancel of its first request.
//
// Threads: the session's actor.
// Invariants
//   G1  A session connects only while it has no connection, and a script or a COPY begins only on a
//       connection that no other one has.
//   G2  A cancel travels only while a task cancels, one at a time.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::postgres {

class connection_stage {
 public:
  bool is_connecting() const noexcept { return stage_ == stage::connecting; }
  // A script or a COPY has the connection.
  bool is_alone() const noexcept { return stage_ == stage::alone; }

  void begin_to_connect() noexcept { move(stage::none, stage::connecting); }
  void open() noexcept { move(stage::connecting, stage::shared); }
  void fail() noexcept { move(stage::connecting, stage::none); }
  void begin_alone() noexcept { move(stage::shared, stage::alone); }
  void end_alone() noexcept { move(stage::alone, stage::shared); }
  void lose() noexcept {
    TROUPE_INVARIANT(stage_ == stage::shared || is_alone(), "G1");
    stage_ = stage::none;
  }

 private:
  enum class stage : std::uint8_t { none, connecting, shared, alone };

  void move([[maybe_unused]] stage from, stage to) noexcept {
    TROUPE_INVARIANT(stage_ == from, "G1");
    stage_ = to;
  }

  stage stage_ = stage::none;
};

class cancel_stage {
 public:
  // A task cancels the statement that runs, and asks again until it has ended.
  bool is_under_way() const noexcept { return stage_ != stage::none; }
  // A cancel was sent that may not have arrived.
  bool travels() const noexcept { return stage_ == stage::travels; }

  void begin() noexcept {
    TROUPE_INVARIANT(stage_ == stage::none, "G2");
    stage_ = stage::waits;
  }
  void send() noexcept {
    TROUPE_INVARIANT(stage_ == stage::waits, "G2");
    stage_ = stage::travels;
  }
  void arrive() noexcept {
    TROUPE_INVARIANT(travels(), "G2");
    stage_ = stage::waits;
  }
  // The task has nothing to cancel any longer, or the connection is lost.
  void end() noexcept { stage_ = stage::none; }

 private:
  enum class stage : std::uint8_t { none, waits, travels };
  stage stage_ = stage::none;
};

}  // namespace troupe::postgres
