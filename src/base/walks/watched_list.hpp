// watched_list: an intrusive list under a lock, through which a thread can walk while others add
// and remove: the walk holds the lock for a bounded number of objects at a time.
// Invariants
//   L1  `next_` is null or an object in the list: the thread that removes that object advances
//       `next_`.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/invariant.hpp"
#include "base/walks/is_listed.hpp"
#include "base/walks/waiters_first.hpp"
#include "troupe/base/intrusive_list.hpp"

namespace troupe::base {

// Threads: any; one walks at a time. `Mutex` is another type in tests only.
template <class T, auto Link, class Mutex = std::mutex>
class watched_list {
 public:
  using list = intrusive_list<T, Link>;
  using lock = std::unique_lock<Mutex>;
  // Through how many objects a walk goes before it unlocks.
  static constexpr std::size_t piece_max = 64;

  void push_front(T& element) {
    const lock held = turns_.enter(mutex_);
    all_.push_front(element);
  }
  void remove(T& element) {
    const lock held = turns_.enter(mutex_);
    if (next_ == &element) next_ = list::next(element);  // L1
    all_.remove(element);
  }

  // Calls `look` with each object that is listed from the beginning of the walk to its end, and
  // with no object twice; objects that come or go meanwhile may be left out. `look` gets the lock,
  // which keeps the object listed: it may unlock it once something else keeps the object. It must
  // not call this list.
  template <class Look>
  void for_each(Look look) {
    lock held(mutex_);
    next_ = all_.first();
    while (next_ != nullptr) {
      for (std::size_t i = 0; held.owns_lock() && next_ != nullptr && i < piece_max; ++i) {
        T& element = *next_;
        TROUPE_INVARIANT(is_listed(all_, element), "L1");
        next_ = list::next(element);
        look(element, held);
      }
      if (held.owns_lock()) held.unlock();
      turns_.let_in();
      held.lock();
    }
  }

 private:
  Mutex mutex_;
  waiters_first turns_;
  list all_;
  T* next_ = nullptr;  // at which the walk continues
};

}  // namespace troupe::base
