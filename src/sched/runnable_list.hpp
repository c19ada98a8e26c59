// runnable_list: waiting runnables, oldest first, linked through their `next`: so no operation can
// fail.
//
// Plain data: its owner decides which lock or thread guards it.
#pragma once

#include <cstddef>

#include "sched/runnable.hpp"

namespace troupe::sched {

class runnable_list {
 public:
  void push(runnable& item) noexcept {
    item.next = nullptr;
    *end_ = &item;
    end_ = &item.next;
    ++count_;
  }

  // The oldest, or null.
  runnable* pop() noexcept { return oldest_ == nullptr ? nullptr : &take(0); }

  // Takes the runnable with exactly `older` older ones in the list. Cost: a step for each of these.
  runnable& take(std::size_t older) noexcept {
    runnable** link = &oldest_;
    for (; older != 0; --older) link = &(*link)->next;
    runnable& item = **link;
    *link = item.next;
    if (end_ == &item.next) end_ = link;
    --count_;
    return item;
  }

  bool empty() const noexcept { return oldest_ == nullptr; }
  std::size_t count() const noexcept { return count_; }

  runnable_list() = default;
  runnable_list(const runnable_list&) = delete;
  runnable_list& operator=(const runnable_list&) = delete;

 private:
  runnable* oldest_ = nullptr;
  runnable** end_ = &oldest_;
  std::size_t count_ = 0;
};

}  // namespace troupe::sched
