// search_request: whether a search for deadlocks is to come. A template, so that
// tests/models/actor/search_request.cpp checks this very source (docs/protocols/deadlocks.md).
// Invariants
//   R1  a wait for what others do that lasts is seen by a search, or a search is to come: who parks
//   an actor with such a wait
//       asks after the park whether a search is to come still.
#pragma once

#include "base/atomics.hpp"

namespace troupe::actor {

// Threads: any; searches are one at a time.
template <class Atomics = base::std_atomics>
class search_request {
 public:
  using flag = typename Atomics::template atomic<bool>;

  // For who begins to wait: a hint, since one who parks asks once more.
  const flag& soon() const noexcept { return soon_; }

  // True for the first who asks: it sees to it that the search comes.
  bool ask() noexcept {
    // order: relaxed (both)  who is the first arms a timer, under a mutex
    return !soon_.load(std::memory_order_relaxed) &&
           !soon_.exchange(true, std::memory_order_relaxed);
  }

  // The actor of a wait has just been parked. As ask().
  bool ask_when_parked() noexcept {
    // Either the search that begins finds the actor parked, or this finds that it has begun.
    Atomics::light_or_full_fence();
    return ask();
  }

  // A search is to come, whoever asks.
  // order: relaxed  as ask
  void expect() noexcept { soon_.store(true, std::memory_order_relaxed); }

  // The search begins: it looks at the actors after this. False when it may miss one that is just
  // being parked.
  bool begin() noexcept {
    // order: relaxed  what begins to wait from here on asks for another search; the fence orders
    // this before the looks
    soon_.store(false, std::memory_order_relaxed);
    return Atomics::heavy_fence();
  }

 private:
  flag soon_{false};
};

}  // namespace troupe::actor
