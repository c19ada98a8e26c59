// run_queue: runnables waiting for a worker, oldest first.
//
// Plain data: the worker's biased lock guards it, only the count may be read by anyone.
// Unbounded: an intrusive list costs nothing for a long queue, and no overflow queue is needed.
#pragma once

#include <atomic>
#include <cstddef>

#include "sched/runnable.hpp"

namespace troupe::sched {

class run_queue {
 public:
  void push(runnable& item) noexcept {
    item.next = nullptr;
    *end_ = &item;
    end_ = &item.next;
    set_count(count() + 1);
  }

  // The oldest, or null.
  runnable* pop() noexcept {
    runnable* item = head_;
    if (item == nullptr) return nullptr;
    head_ = item->next;
    end_ = head_ == nullptr ? &head_ : end_;
    set_count(count() - 1);
    return item;
  }

  bool empty() const noexcept { return head_ == nullptr; }

  // Exact inside the lock, a hint outside.
  // order: relaxed  a hint; publishes nothing
  std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  // order: relaxed  a hint; publishes nothing
  void set_count(std::size_t n) noexcept { count_.store(n, std::memory_order_relaxed); }

  runnable* head_ = nullptr;
  runnable** end_ = &head_;  // where the next one is linked: never a branch
  std::atomic<std::size_t> count_{0};
};

}  // namespace troupe::sched
