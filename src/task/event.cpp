#include "troupe/task/event.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

struct event::state {
  std::mutex mutex;
  bool set = false;
  std::vector<promise<>> waiting;
  std::size_t prune_at = 16;  // at this number of waiters wait() removes those that gave up
};

event::event() : state_(std::make_shared<state>()) {}

void event::set() const {
  std::vector<promise<>> waiting;
  {
    std::lock_guard lock(state_->mutex);
    state_->set = true;
    waiting.swap(state_->waiting);
  }
  for (promise<>& waiter : waiting) waiter.set_value();
}

void event::reset() const {
  std::lock_guard lock(state_->mutex);
  state_->set = false;
}

bool event::is_set() const {
  std::lock_guard lock(state_->mutex);
  return state_->set;
}

future<> event::wait() const {
  promise<> waiter;
  future<> later = waiter.get_future();
  std::unique_lock lock(state_->mutex);
  if (state_->set) {
    lock.unlock();
    waiter.set_value();
    return later;
  }
  std::vector<promise<>>& all = state_->waiting;
  if (all.size() >= state_->prune_at) {
    std::erase_if(all, [](const promise<>& other) { return other.abandoned(); });
    state_->prune_at = std::max<std::size_t>(16, 2 * all.size());
  }
  all.push_back(std::move(waiter));
  return later;
}

// order: relaxed  no other thread can see it yet
latch::latch(std::size_t count) : left_(std::make_shared<std::atomic<std::size_t>>(count)) {
  if (count == 0) opened_.set();
}

void latch::count_down(std::size_t by) const {
  // order: relaxed  only compared
  std::size_t seen = left_->load(std::memory_order_relaxed);
  do {
    if (by > seen)
      throw usage_error(
          "troupe: latch::count_down: by more than the remaining count; make the latch with a "
          "larger count");
    // order: acq_rel  a waiter sees the writes of all threads that counted down: the last one
    // passes them on; relaxed: only compared
  } while (!left_->compare_exchange_weak(seen, seen - by, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  if (seen == by && by != 0) opened_.set();
}

}  // namespace troupe
