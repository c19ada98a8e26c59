#include "sched/policies/simulated.hpp"

#include <algorithm>

#include "sched/runnable_queue.hpp"

namespace troupe::sched {

struct simulated::lane final : executor {
  explicit lane(simulated& owner) : owner(owner) {}
  void submit(runnable& item) noexcept override { owner.submit_to(*this, item); }
  simulated& owner;
  runnable_queue queue;
};

simulated::simulated(std::uint64_t seed, outstanding_work& alive, runtime_host& of)
    : alive_(alive), runtime_(of), random_(seed) {
  add_lane();
}

simulated::~simulated() { shut_down(); }

executor& simulated::add_lane() {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::make_unique<lane>(*this));
  return *lanes_.back();
}

void simulated::submit_to(lane& to, runnable& item) noexcept {
  alive_.enter();
  put(to, item);
}

void simulated::put(lane& to, runnable& item) noexcept {
  std::lock_guard lock(mutex_);
  to.queue.push(item);
  tell();
}

bool simulated::step() {
  runnable* item = nullptr;
  lane* from = nullptr;
  {
    std::lock_guard lock(mutex_);
    const std::size_t of_pool = std::min(lanes_[0]->queue.count(), choices_max);
    std::size_t choices = of_pool;
    for (std::size_t i = 1; i < lanes_.size(); ++i) choices += lanes_[i]->queue.empty() ? 0 : 1;
    if (choices == 0) return false;
    std::size_t chosen = choose(choices);
    if (chosen < of_pool) {
      from = lanes_[0].get();
    } else {
      chosen -= of_pool;
      std::size_t i = 1;
      while (lanes_[i]->queue.empty() || chosen-- != 0) ++i;
      from = lanes_[i].get();
      chosen = 0;
    }
    item = &from->queue.take(chosen);
  }
  // order: relaxed (both)  a statistic, which this thread alone writes
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  advance_to(now_ns() + static_cast<std::int64_t>(choose(2'000)));
  const runnable_vtable& type = *item->type;
  runtime_.before_turn();
  const after_turn after = type.run(*item);
  if (after == after_turn::again || (is_quiet(after) && !type.deactivate(*item))) {
    put(*from, *item);
    return true;
  }
  if (after == after_turn::gone) type.dispose(*item);
  if (alive_.leave()) poke();
  return true;
}

bool simulated::poll_io() {
  if (io_ == nullptr || !io_->door.try_enter()) return false;
  const bool came = io_->poll(false);
  if (came) io_->dispatch();
  io_->door.leave();
  return came;
}

bool simulated::awaited() const {
  return poked_ || std::any_of(lanes_.begin(), lanes_.end(),
                               [](const auto& lane) { return !lane->queue.empty(); });
}

void simulated::wait_until(std::chrono::steady_clock::time_point limit) {
  std::unique_lock lock(mutex_);
  if (io_ == nullptr) {
    filled_.wait_until(lock, limit, [this] { return awaited(); });
  } else if (!awaited() && io_->door.try_enter()) {
    inside_ = true;
    lock.unlock();
    const auto span = std::max<std::chrono::nanoseconds>(limit - std::chrono::steady_clock::now(),
                                                         std::chrono::nanoseconds(0));
    if (io_->wait(&span)) io_->dispatch();
    io_->door.leave();
    lock.lock();
    inside_ = false;
  }
  poked_ = false;
}

void simulated::poke() {
  std::lock_guard lock(mutex_);
  poked_ = true;
  tell();
}

// Under the mutex.
void simulated::tell() {
  filled_.notify_all();
  if (inside_) io_->wake();
}

void simulated::shut_down() {
  for (const auto& lane : lanes_) {
    while (runnable* item = lane->queue.pop()) {
      item->type->discard(*item);
      static_cast<void>(alive_.leave());
    }
  }
}

std::size_t simulated::queued() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->queue.count();
  return sum;
}

std::vector<policy::counters> simulated::count() const {
  counters all;
  // order: relaxed  a statistic
  all.turns = turns_.load(std::memory_order_relaxed);
  all.queued = queued();
  return {all};
}

}  // namespace troupe::sched
