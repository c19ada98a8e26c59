// event and latch: any number of waiters wait until an event is set, or until a latch is counted
// down to zero.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/task/future.hpp"

namespace troupe {

// A flag that coroutines and threads can wait for; set() resumes all waiters. Thread: any. Copies
// refer to the same event.
//
// Example:
//     troupe::task<> door(troupe::event opened) {
//       co_await opened.wait();
//       std::cout << "come in\n";
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::event opened;
//       rt.spawn(door(opened));
//       rt.post([opened] { opened.set(); });
//       rt.run();
//     }
class event {
 public:
  event();

  // An event stays set until reset().
  void set() const;
  void reset() const;
  bool is_set() const;

  // Returns a future that is ready when the event is set. co_await it, optionally with timeout() or
  // stop(), or block in get() on a thread of your own. Thread: any. Cost: about 100 ns. Waits that
  // were given up are removed from time to time.
  [[nodiscard]] future<> wait() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

// A counter that opens when it has been counted down to zero, and then stays open. Thread: any.
// Copies refer to the same latch.
class latch {
 public:
  // Counts down from `count`; with 0 it is open from the beginning.
  explicit latch(std::size_t count);

  // Throws usage_error if `by` is more than the remaining count.
  void count_down(std::size_t by = 1) const;
  bool is_open() const { return opened_.is_set(); }
  [[nodiscard]] future<> wait() const { return opened_.wait(); }

 private:
  std::shared_ptr<std::atomic<std::size_t>> left_;
  event opened_;
};

}  // namespace troupe
