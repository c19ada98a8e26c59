#include "sched/simulated.hpp"

#include <deque>

namespace troupe::sched {

struct simulated::lane final : executor {
  lane(simulated& owner, std::size_t index) : owner(owner), index(index) {}
  void submit(runnable& item) override { owner.submit_to(index, item); }
  simulated& owner;
  std::size_t index;
  std::deque<runnable*> queue;
};

simulated::simulated(std::uint64_t seed, census& alive) : alive_(alive), random_(seed) { add_lane(); }

simulated::~simulated() { shut_down(); }

executor& simulated::add_lane() {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::make_unique<lane>(*this, lanes_.size()));
  return *lanes_.back();
}

void simulated::submit_to(std::size_t lane, runnable& item) {
  alive_.enter();
  put(lane, item);
}

void simulated::put(std::size_t lane, runnable& item) {
  std::lock_guard lock(mutex_);
  lanes_[lane]->queue.push_back(&item);
  filled_.notify_one();
}

bool simulated::step() {
  runnable* item = nullptr;
  std::size_t from = 0;
  {
    std::lock_guard lock(mutex_);
    std::size_t choices = lanes_[0]->queue.size();
    for (std::size_t i = 1; i < lanes_.size(); ++i) choices += lanes_[i]->queue.empty() ? 0 : 1;
    if (choices == 0) return false;
    std::size_t chosen = choose(choices);
    if (chosen >= lanes_[0]->queue.size()) {
      chosen -= lanes_[0]->queue.size();
      for (from = 1; lanes_[from]->queue.empty() || chosen-- != 0;) ++from;
      chosen = 0;
    }
    auto& queue = lanes_[from]->queue;
    item = queue[chosen];
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  ++counters_.turns;
  now_ns_ += static_cast<std::int64_t>(choose(2'000));
  const runnable_type& type = *item->type;
  const after_turn after = type.run(*item);
  if (after == after_turn::again || (after == after_turn::quiet && !type.settle(*item))) {
    put(from, *item);
    return true;
  }
  if (after == after_turn::gone) type.dispose(*item);
  if (alive_.leave()) poke();
  return true;
}

void simulated::wait_until(std::chrono::steady_clock::time_point limit) {
  std::unique_lock lock(mutex_);
  filled_.wait_until(lock, limit, [this] {
    for (const auto& lane : lanes_) {
      if (!lane->queue.empty()) return true;
    }
    return poked_;
  });
  poked_ = false;
}

void simulated::poke() {
  std::lock_guard lock(mutex_);
  poked_ = true;
  filled_.notify_all();
}

void simulated::shut_down() {
  for (const auto& lane : lanes_) {
    while (!lane->queue.empty()) {
      runnable* item = lane->queue.front();
      lane->queue.pop_front();
      item->type->discard(*item);
      static_cast<void>(alive_.leave());
    }
  }
}

policy::counters simulated::count() const { return counters_; }

}  // namespace troupe::sched
