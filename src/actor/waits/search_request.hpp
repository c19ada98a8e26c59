// search_request: whether a search for deadlocks is due. A template, so that
// tests/models/actor/search_request.cpp checks this very source (docs/protocols/deadlocks.md).
// Invariants
//   R1  a lasting wait for another turn's work is seen by a search, or a search is due: a thread
//       that parks an actor with such a wait asks after the park whether a search is still due.
#pragma once

#include "base/atomics.hpp"

namespace troupe::actor {

// Threads: any; one search at a time.
template <class Atomics = base::std_atomics>
class search_request {
 public:
  using flag = typename Atomics::template atomic<bool>;

  // For a turn that begins to wait: a hint, since the thread that parks the actor asks again.
  const flag& soon() const noexcept { return soon_; }

  // True for the first caller that asks: it must see to it that the search starts.
  bool ask() noexcept {
    // order: relaxed (both)  the first caller arms a timer, under a mutex
    return !soon_.load(std::memory_order_relaxed) &&
           !soon_.exchange(true, std::memory_order_relaxed);
  }

  // As ask(), by the thread that has just parked the actor of a wait.
  bool ask_when_parked() noexcept {
    // Either the search that begins finds the actor parked, or this call finds that the search has
    // begun.
    Atomics::light_or_full_fence();
    return ask();
  }

  // A search is due, without a caller that asks.
  // order: relaxed  as ask
  void expect() noexcept { soon_.store(true, std::memory_order_relaxed); }

  // The search begins, and looks at the actors only after this call. False when it may miss an
  // actor that is being parked now.
  bool begin() noexcept {
    // order: relaxed  a wait that begins from here on asks for another search; the fence orders
    // this before the looks
    soon_.store(false, std::memory_order_relaxed);
    return Atomics::heavy_fence();
  }

 private:
  flag soon_{false};
};

}  // namespace troupe::actor
