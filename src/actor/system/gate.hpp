// gate: lets threads wake actors until the end of a runtime begins.
//
// Any thread may wake actors and drop last refs while the end begins. It does so between enter()
// and leave(), and the end waits until no thread is inside. A worker of the runtime's own pool
// enters without being counted: the end waits for that thread anyway, in the pool's shut_down(),
// and discards afterwards all that it has queued. Protocol: docs/protocols/outstanding_work.md.
// Model: tests/models/actor/gate.cpp. Invariants
//   G1  after close() no thread that is counted is inside with a true result of enter().
//   G2  the executors live until the workers of the pool have ended, and all that these have queued
//       until then is discarded.
// Rejected: a flag for each worker and a light fence, with a heavy one in close(): it gives G1 for
// workers as well, which G2 makes superfluous.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::actor {

template <class Atomics = base::std_atomics>
class basic_gate {
 public:
  using flag = typename Atomics::template atomic<bool>;
  // Whether the end waits for the calling thread. The same at enter() and at leave().
  enum class ends : std::uint8_t { by_leave, with_pool };

  // False: the end has begun, and no actor is woken any longer; the caller must still call leave().
  bool enter(const flag& closing, ends as) noexcept {
    // order: relaxed  a hint, by G2
    if (as == ends::with_pool) return !closing.load(std::memory_order_relaxed);
    // order: seq_cst  the count before `closing`; close() does it the other way round: at least one
    // of the two threads sees the other
    inside_.fetch_add(1, std::memory_order_seq_cst);
    return !closing.load(std::memory_order_seq_cst);
  }

  // order: release  the thread's work inside is seen by the end; pairs with wait
  void leave(ends as) noexcept {
    if (as == ends::by_leave) inside_.fetch_sub(1, std::memory_order_release);
  }

  void close(flag& closing) noexcept {
    // order: seq_cst  as enter
    closing.store(true, std::memory_order_seq_cst);
    wait();
  }

  // Until no thread that is counted is inside.
  void wait() const noexcept {
    // order: seq_cst  as enter; acquires the work of the threads inside
    for (int spin = 0; inside_.load(std::memory_order_seq_cst) != 0; ++spin)
      Atomics::wait_a_little(spin);
  }

 private:
  typename Atomics::template atomic<std::uint32_t> inside_{0};
};

using gate = basic_gate<>;

}  // namespace troupe::actor
