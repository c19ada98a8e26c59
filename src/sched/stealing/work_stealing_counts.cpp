// What the pool's workers have counted.
#include "sched/stealing/work_stealing.hpp"

namespace troupe::sched {

std::size_t work_stealing::queued() const {
  std::size_t sum = 0;
  for (const worker* one : workers_) sum += one->queue.count();
  return sum;
}

std::vector<policy::counters> work_stealing::count() const {
  std::vector<counters> all;
  all.reserve(workers_.size());
  for (const worker* w : workers_) {
    // order: relaxed (all)  statistics
    all.push_back(
        {w->turns.load(std::memory_order_relaxed), w->steals.load(std::memory_order_relaxed),
         w->stolen.load(std::memory_order_relaxed), w->wakes.load(std::memory_order_relaxed),
         w->parks.load(std::memory_order_relaxed), w->queue.count()});
  }
  return all;
}

std::uint64_t work_stealing::turns_done() const noexcept {
  std::uint64_t sum = 0;
  // order: relaxed  a statistic
  for (const worker* w : workers_) sum += w->turns.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace troupe::sched
