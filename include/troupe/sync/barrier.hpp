// barrier: a point at which a number of parties wait for each other, repeatedly.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <mutex>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe {

// Thread: any. A wait that ends early (timed_out, cancelled) has not arrived. Lifetime: the barrier
// must live as long as its waits.
//
// Example:
//     troupe::task<> step(std::shared_ptr<troupe::barrier> all) {
//       co_await all->arrive();
//       co_await all->arrive();  // the same barrier serves the next round
//     }
//     int main() {
//       troupe::runtime rt;
//       auto three = std::make_shared<troupe::barrier>(3);
//       for (int i = 0; i < 3; ++i) rt.spawn(step(three));
//       rt.run();
//     }
class barrier {
 public:
  // Throws usage_error for no party.
  explicit barrier(std::size_t parties) : parties_(parties) {
    if (parties == 0) throw usage_error("troupe: barrier: it needs at least one party");
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  struct arriving : sync::waiter {
    static constexpr const char* name = "the other parties of a barrier";
    explicit arriving(barrier& at) noexcept : owner(&at) {}
    arriving(arriving&& other) noexcept : owner(other.owner) {}
    bool start() noexcept;
    bool withdraw() noexcept {
      std::lock_guard lock(owner->mutex_);
      return std::exchange(paused, false) || leave();
    }
    bool put_back() const noexcept { return false; }  // the others have passed
    // A party that is paused has not arrived.
    bool pause() noexcept {
      std::lock_guard lock(owner->mutex_);
      paused = leave();
      return paused;
    }
    void resume() noexcept {
      sync::woken_waiters ready;
      {
        std::lock_guard lock(owner->mutex_);
        // otherwise the wait has ended by its limit
        if (!std::exchange(paused, false) || !arrive(ready)) return;
      }
      ready.wake();
      wake(*this);
    }
    bool finish() const noexcept { return last; }

    barrier* owner;
    bool last = false, paused = false;

   private:
    // Both under the mutex. Returns true if it is the last one.
    bool arrive(sync::woken_waiters& ready) noexcept;
    bool leave() noexcept {
      if (!owner->list_.withdraw(*this)) return false;
      --owner->arrived_;
      return true;
    }
  };
  // Waits until all parties have arrived: co_await it, optionally with timeout() or stop(), or
  // block in get() on a plain thread. Returns true for the party that arrived last.
  sync::awaiting<arriving> arrive() noexcept {
    return sync::awaiting<arriving>(std::in_place, *this);
  }

 private:
  const std::size_t parties_;
  base::small_mutex mutex_;
  sync::waiter_list list_;
  std::size_t arrived_ = 0;
};

inline bool barrier::arriving::arrive(sync::woken_waiters& ready) noexcept {
  if (++owner->arrived_ < owner->parties_) {
    owner->list_.push(*this);
    return false;
  }
  last = true;
  owner->arrived_ = 0;
  ready.push_all(owner->list_);
  return true;
}

inline bool barrier::arriving::start() noexcept {
  sync::woken_waiters ready;
  {
    std::lock_guard lock(owner->mutex_);
    if (!arrive(ready)) return true;
  }
  ready.wake();
  return false;
}

}  // namespace troupe
