// waiters_first: lets threads that wait for a mutex have it before one thread that takes it again
// and again, for a long walk in pieces. Without it that thread would often take the mutex once more
// before a thread that its unlock has woken comes to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe::base {

// One for each mutex. Threads: any; one walks at a time.
class waiters_first {
 public:
  // Locks the mutex, for a thread that holds it for an instant.
  template <class Mutex>
  std::unique_lock<Mutex> enter(Mutex& mutex) {
    std::unique_lock<Mutex> lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) [[likely]]
      return lock;
    // order: relaxed (all)  counts, by which the walk is polite; the mutex guards the data
    waiting_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    entered_.fetch_add(1, std::memory_order_relaxed);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return lock;
  }

  // For the walking thread, between two pieces, without the mutex: returns once as many threads
  // have entered as were waiting, or none waits any longer.
  void let_in() const noexcept {
    // order: relaxed (all)  as above
    const std::uint32_t before = entered_.load(std::memory_order_relaxed);
    const std::uint32_t waiting = waiting_.load(std::memory_order_relaxed);
    if (waiting == 0) [[likely]]
      return;
    for (int tries = 0; waiting_.load(std::memory_order_relaxed) != 0 &&
                        entered_.load(std::memory_order_relaxed) - before < waiting;
         ++tries) {
      constexpr int yields_max = 64;
      if (tries < yields_max) {
        std::this_thread::yield();
      } else {
        // sleeps: a waiting thread needs a processor, perhaps this one
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

 private:
  std::atomic<std::uint32_t> waiting_{0}, entered_{0};
};

}  // namespace troupe::base
