// race: which of the waits that cannot be undone may happen next, among the branches of a when_any
// and all branches within them. For the library's own use.
//
// A send may be taken on any thread while its coroutine sleeps. If two sends of one race were taken
// before either coroutine has run, one of them would lose, although its value is taken. A party
// that takes a send therefore enters the race, and a party that finds it entered passes over the
// send; the race is left when the coroutine of the first one has run. Then its turn examines the
// sends that were passed over again (docs/protocols/given_up_waits.md).
//
// Threads: any; must_look() only in a turn of the actor that waits.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>

namespace troupe::tasks {

class async_call;

struct race_parts {
  template <class T>
  using atomic = std::atomic<T>;
};

template <class Parts>
class race_word {
 public:
  // Returns false if another wait of the race has happened: then the caller does not take this one.
  bool enter() noexcept {
    // order: acq_rel (both)  a party that fails has set skipped_ before; pairs with leave/acq_rel
    if (!entered_.exchange(true, std::memory_order_acq_rel)) return true;
    skipped_.store(true, std::memory_order_relaxed);  // order: relaxed  the exchange publishes it
    return !entered_.exchange(true, std::memory_order_acq_rel);
  }
  // After enter(): the coroutine has run, or the wait has not happened after all.
  // order: acq_rel  sees skipped_ of those that have failed; pairs with enter/acq_rel
  void leave() noexcept { entered_.exchange(false, std::memory_order_acq_rel); }
  // Whether the caller must look at all waits of the race once more.
  bool must_look() noexcept {
    // order: relaxed (all)  read behind leave(), or behind the mutex of the party that has failed
    return skipped_.load(std::memory_order_relaxed) && !entered_.load(std::memory_order_relaxed) &&
           skipped_.exchange(false, std::memory_order_relaxed);
  }

 protected:
  typename Parts::template atomic<bool> entered_{false}, skipped_{false};
};
using race = race_word<race_parts>;

// The race in which the call runs; null for most. It lives as long as the waits of the call.
race* race_around(const async_call& call) noexcept;
// Examines the sends that were passed over again, if they may happen now.
void look_again(race& race) noexcept;

}  // namespace troupe::tasks
