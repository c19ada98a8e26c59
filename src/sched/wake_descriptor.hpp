// wake_descriptor: a descriptor that is readable when the main thread has something to do, for a
// loop of the user's own that sleeps in poll(2) or the like.
//
// The main thread owns it, and clears it at the beginning of each round. Between two rounds its
// parker counts as asleep elsewhere: the first party that notifies the parker rings
// (base/parker.hpp, P4). Ringers: any thread.
#pragma once

#include <atomic>

namespace troupe::sched {

class wake_descriptor {
 public:
  wake_descriptor() = default;
  wake_descriptor(const wake_descriptor&) = delete;
  wake_descriptor& operator=(const wake_descriptor&) = delete;
  ~wake_descriptor();

  // Returns the descriptor; the first call makes it, and rings. Any thread. Throws
  // std::system_error.
  int open();
  // order: relaxed  false for a descriptor that another thread makes now: it is readable already
  bool is_open() const noexcept { return fd_.load(std::memory_order_relaxed) >= 0; }
  // It is open, although the caller may not see that yet.
  void ring() noexcept;
  void clear() noexcept;

 private:
  std::atomic<int> fd_{-1};
};

}  // namespace troupe::sched
