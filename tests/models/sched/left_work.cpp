// Work that is left where only a search finds it: behind a worker that is in a long handler.
//
// A busy worker leaves items. When it finds the set of idle workers lonely, it asks for a watch.
// Idle workers run the same loop that ships. A worker that takes an item is stuck, too, until all
// items are taken. No worker watches by the clock: a worker that does not doze sleeps without a
// limit, and no sleep ends by itself. So work that no worker was called for is a deadlock.
// Checks that the set of idle workers is not lonely for long while work is left (R4).
//
// mutation: no_heavy_fence
// mutation: no_look_after_sleep
// mutation: no_look_after_stop_searching
#include "models/relacy_atomics.hpp"

#include "base/parker.hpp"
#include "sched/stealing/idle_life.hpp"
#include "sched/stealing/idle_workers.hpp"

namespace {

using namespace troupe;
using models::access;
using atomics = models::kernel_atomics;

struct worker {
  models::guarded<worker*> next_sleeper{nullptr};
  models::guarded<bool> called{false};
  base::basic_parker<atomics, models::futex> parker;
  bool has_item = false;
};

struct times {
  static constexpr std::int64_t first = 2, last = 1, last_while_idle = 1, last_dozing = 2;
  static constexpr int idle_watches_max = 1;
};

template <unsigned Idle, unsigned Items>
struct left_work_model : rl::test_suite<left_work_model<Idle, Items>, Idle + 1> {
  sched::idle_workers<worker, atomics, models::mutex> idle_workers_;
  models::atomic<unsigned> left_{0};
  models::latch all_taken_;
  worker workers_[Idle];
  bool ending_ = false;
  unsigned taken_ = 0;  // the model's own; all threads see it at once

  // The functions that idle_life needs from its pool.
  bool ending() { return ending_; }
  unsigned workers() { return 1; }
  bool anyone_busy() { return true; }
  bool inbox_has_some() { return false; }
  std::uint64_t turns_done() { return 0; }
  void wake(worker* sleeper) {
    if (sleeper != nullptr) sleeper->parker.notify();
  }
  // There is no poller here: tests/models/sched/poller.cpp has one.
  bool unattended() { return false; }
  // These are tested in tests/models/sched/idle_workers.cpp.
  void take_gift(worker&) {}
  void hand_on(worker&) {}
  void take_what_came(worker&) {}
  void count_as_busy(worker&) {}  // no timers
  sched::rested rest(worker& self, const std::chrono::nanoseconds* limit, bool) {
    if (limit != nullptr)
      return self.parker.wait_for(*limit) ? sched::rested::notified : sched::rested::over;
    self.parker.wait();
    return sched::rested::notified;
  }
  bool nothing_left(const worker& self) {
    const bool found_work = self.has_item;
    if (models::mutated(found_work ? "no_look_after_stop_searching" : "no_look_after_sleep"))
      return true;
    atomics::heavy_fence();
    return left_.load(std::memory_order_relaxed) == 0;
  }
  bool take_work(worker& self) {
    if (left_.load(std::memory_order_relaxed) == 0) return false;
    left_.fetch_sub(1, std::memory_order_relaxed);
    self.has_item = true;
    ++taken_;
    return true;
  }

  void be_busy() {
    for (unsigned i = 0; i < Items; ++i) {
      left_.fetch_add(1, std::memory_order_relaxed);
      atomics::light_fence();
      if (idle_workers_.lonely().load(std::memory_order_relaxed) != 0) wake(idle_workers_.call());
    }
    all_taken_.wait();
  }

  void be_idle(worker& self) {
    sched::idle_life<left_work_model, worker, times> idle(*this, self);
    while (idle.find_work()) {
      if (taken_ == Items) {
        ending_ = true;
        all_taken_.open();
        for (worker& one : workers_) one.parker.notify();
      }
      all_taken_.wait();
      self.has_item = false;
    }
  }

  void before() { models::futex::early_left = 0; }
  void thread(unsigned index) { index == 0 ? be_busy() : be_idle(workers_[index - 1]); }
  void after() { RL_ASSERT(taken_ == Items); }
};

}  // namespace

int main() {
  models::weaken_if("no_heavy_fence", access::fence, "nothing_left");
  models::weak_may_fail = false;
  const bool holds = models::check<left_work_model<1, 1>>(3) &&
                     models::check<left_work_model<2, 1>>() &&
                     models::check<left_work_model<2, 2>>();
  return holds ? 0 : 1;
}
