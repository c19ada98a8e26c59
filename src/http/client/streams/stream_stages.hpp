// stream_stages: the stages of a request on a connection of HTTP/2 that requests share, and of the
// connection.
//
// Threads: under the connection's mutex.
// Invariants
//   T1  An answer ends once, and only after its request was sent.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::http {

class asked_stage {
 public:
  // Its head was not sent yet.
  bool waits() const noexcept { return stage_ == stage::waits; }
  // The answer is complete.
  bool has_answer() const noexcept { return stage_ == stage::answered || stage_ == stage::done; }
  // Nothing comes or goes any more.
  bool is_closed() const noexcept { return stage_ == stage::cut || stage_ == stage::done; }
  bool is_over() const noexcept { return has_answer() || is_closed(); }

  // Its head, or the fields behind its body, are sent.
  void note_sent() noexcept {
    if (stage_ == stage::waits) stage_ = stage::asked;
  }
  void end_answer() noexcept {
    TROUPE_INVARIANT(stage_ == stage::asked || stage_ == stage::cut, "T1");
    stage_ = stage_ == stage::asked ? stage::answered : stage::done;
  }
  // Returns false if it was closed before.
  bool close() noexcept {
    if (is_closed()) return false;
    stage_ = has_answer() ? stage::done : stage::cut;
    return true;
  }

 private:
  // `cut`: closed without a complete answer.
  enum class stage : std::uint8_t { waits, asked, answered, cut, done };
  stage stage_ = stage::waits;
};

class sharing_stage {
 public:
  bool takes_requests() const noexcept { return stage_ == stage::open; }
  // The driver fails the requests that it finds, or another driver has the wire.
  bool is_over() const noexcept { return stage_ == stage::over; }

  // It takes no new requests.
  void leave() noexcept {
    if (stage_ == stage::open) stage_ = stage::leaves;
  }
  void end() noexcept { stage_ = stage::over; }

 private:
  enum class stage : std::uint8_t { open, leaves, over };
  stage stage_ = stage::open;
};

}  // namespace troupe::http
