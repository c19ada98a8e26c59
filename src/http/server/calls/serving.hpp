// serving: the stage of the request that a connection of HTTP/1.1 serves.
//
// Threads: the connection's task and its children, one at a time.
// Invariants
//   S1  The body is collected before the handler waits, and the wait has ended before the request
//       is over.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::http {

class serving {
 public:
  // A request is under way, and its head is there.
  bool is_under_way() const noexcept { return stage_ != stage::none; }
  // Its body is to be collected before its handler runs.
  bool collects() const noexcept { return stage_ == stage::collects; }
  // Its handler, or the task that sends its answer, may wait.
  bool may_wait() const noexcept { return stage_ == stage::waits; }

  void begin() noexcept { move(stage::head); }
  void collect_first() noexcept { move(stage::collects); }
  void begin_to_wait() noexcept {
    if (!may_wait()) move(stage::waits);
  }
  void end_waiting() noexcept { move(stage::served); }
  void end() noexcept { move(stage::none); }

 private:
  enum class stage : std::uint8_t { none, head, collects, waits, served };

  void move(stage to) noexcept {
    TROUPE_INVARIANT(may_follow(stage_, to), "S1");
    stage_ = to;
  }
  static bool may_follow([[maybe_unused]] stage from, [[maybe_unused]] stage to) noexcept {
    switch (to) {
      case stage::none:
        return from == stage::head || from == stage::served;
      case stage::head:
        return from == stage::none;
      case stage::collects:
        return from == stage::head;
      case stage::waits:
        return from == stage::head || from == stage::collects;
      case stage::served:
        return from == stage::collects || from == stage::waits;
    }
    return false;
  }

  stage stage_ = stage::none;
};

}  // namespace troupe::http
