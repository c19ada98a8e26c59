// parker: where one thread sleeps until another one notifies it.
// Owner: the thread that waits. Notifiers: any thread.
// Invariants
//   P1  a notify that comes before the wait is not lost: the wait returns at once.
//   P2  notifies do not add up: two of them before a wait count as one.
// Rejected: condition_variable (a mutex more, and 64 bytes); eventfd (a system call even when nobody waits).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::base {

class parker {
 public:
  // Sleeps until notified. Returns at once when a notify came since the last wait.
  void wait() noexcept;

  // As wait(), but for `limit` at most. True when notified.
  bool wait_for(std::chrono::nanoseconds limit) noexcept;

  // Wakes the owner, or lets its next wait return at once. Costs a system call only if it sleeps.
  void notify() noexcept;

 private:
  enum : std::uint32_t { idle, notified, asleep };
  bool prepare() noexcept;
  std::atomic<std::uint32_t> state_{idle};
};

}  // namespace troupe::base
