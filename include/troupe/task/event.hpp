// event and latch: something that happens once, or a number of times, for any number of waiters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/task/future.hpp"

namespace troupe {

// Set or not; whoever waits goes on as soon as it is set. Any thread; copies are the same event.
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

  // Once set it stays so until reset().
  void set() const;
  void reset() const;
  bool is_set() const;

  // Ready when it is set. co_await it, with timeout() or stop() if you like, or block in get() on a
  // thread of your own. Cost: about 100 ns; those that gave up are forgotten.
  [[nodiscard]] future<> wait() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

// Opens when it was counted down to zero, and stays open. Any thread; copies are the same latch.
class latch {
 public:
  explicit latch(std::size_t count);

  // Throws usage_error for more than is left.
  void count_down(std::size_t by = 1) const;
  bool is_open() const { return opened_.is_set(); }
  [[nodiscard]] future<> wait() const { return opened_.wait(); }

 private:
  std::shared_ptr<std::atomic<std::size_t>> left_;
  event opened_;
};

}  // namespace troupe
