// node_stage: the stage of a node's life.
//
// Invariants
//   N6  A node joins at most once, and before it leaves. It sends nothing after it has left.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::cluster::parts {

enum class stage : std::uint8_t {
  joining,  // it tries to join, again and again
  joined,
  leaving,    // stop() was called: handlers that run may still ask other nodes
  left,       // it sends nothing any more
  abandoned,  // as left, and the node has never joined
};

// Thread: any.
class node_stage {
 public:
  bool has_joined() const noexcept {
    const stage reached = now();
    return reached != stage::joining && reached != stage::abandoned;
  }
  // True for a node that has left, as well.
  bool is_leaving() const noexcept {
    const stage reached = now();
    return reached != stage::joining && reached != stage::joined;
  }
  bool has_left() const noexcept {
    const stage reached = now();
    return reached == stage::left || reached == stage::abandoned;
  }

  // Returns false if the node was stopped or killed meanwhile.
  bool join() noexcept { return move(stage::joining, stage::joined); }
  // Returns false if the node was stopped or killed before. A node that has not joined is
  // abandoned.
  bool begin_to_leave() noexcept {
    return move(stage::joining, stage::abandoned) || move(stage::joined, stage::leaving);
  }
  // Whatever it was doing.
  void end() noexcept {
    begin_to_leave();
    move(stage::leaving, stage::left);
    TROUPE_INVARIANT(has_left(), "N6");
  }

 private:
  stage now() const noexcept {
    // order: acquire  pairs with move/acq_rel: the placement is seen with the stage `joined`
    return now_.load(std::memory_order_acquire);
  }
  bool move(stage from, stage next) noexcept {
    // order: acq_rel  pairs with now/acquire
    return now_.compare_exchange_strong(from, next, std::memory_order_acq_rel);
  }

  std::atomic<stage> now_{stage::joining};
};

}  // namespace troupe::cluster::parts
