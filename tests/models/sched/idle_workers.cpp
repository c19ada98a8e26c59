// Sleeping and waking: the set of idle workers, with the same loop of idle workers that ships.
//
// Submitters push to the inbox and call. A worker that got items takes all of them, and its first
// turn then lasts until other threads have taken every item. So a wake-up that is only late,
// because a busy worker would look at the inbox after its turn, is a deadlock, too. Timed searchers
// time out once, and then never; at their second sleep they doze.
// Checks R1, R2, and that there are no more searchers at a time than are allowed, where no call is
// made beside a searcher.
// In the variant with such calls, the first item of each submitter is given to a sleeper, if there
// is one, and the first worker that finds work calls one more worker without need: then several
// search at the same time.
//
// mutation: no_fence_in_call
// mutation: no_fence_in_sleep
// mutation: no_fence_in_stop_searching
// mutation: no_look_after_sleep
// mutation: no_look_after_stop_searching
// mutation: gift_after_call
#include "models/relacy_atomics.hpp"

#include <utility>

#include "base/parker.hpp"
#include "sched/inbox.hpp"
#include "sched/stealing/idle_life.hpp"
#include "sched/stealing/idle_workers.hpp"

namespace {

using namespace troupe;
using models::access;

struct item {
  models::guarded<item*> next{nullptr};
};

struct worker {
  models::guarded<worker*> next_sleeper{nullptr};
  models::guarded<bool> called{false};
  base::basic_parker<models::fenced_atomics, models::futex> parker;
  models::guarded<item*> gift{nullptr};
  item* mine = nullptr;
};

struct times {
  static constexpr std::int64_t first = 1, last = 1, last_while_idle = 1, last_dozing = 2;
  static constexpr int idle_watches_max = 1;
};

template <unsigned Workers, unsigned Submitters, unsigned ItemsEach, bool Beside = false,
          unsigned Searchers = 1>
struct idle_workers_model
    : rl::test_suite<idle_workers_model<Workers, Submitters, ItemsEach, Beside, Searchers>,
                     Workers + Submitters> {
  static constexpr unsigned items_count = Submitters * ItemsEach;
  sched::idle_workers<worker, models::fenced_atomics, models::mutex> idle_workers_;
  sched::inbox<item, models::fenced_atomics> inbox_;
  models::atomic<unsigned> busy_{0};
  models::latch all_taken_;
  worker workers_[Workers];
  item items_[items_count];
  bool ending_ = false;
  unsigned taken_ = 0, searching_ = 0;  // the model's own; all threads see it at once
  bool calls_one_more_ = Beside;

  // The functions that idle_life needs from its pool.
  bool ending() { return ending_; }
  unsigned workers() { return Workers; }
  bool anyone_busy() { return busy_.load(std::memory_order_relaxed) != 0; }
  std::uint64_t turns_done() { return 0; }
  bool nothing_left(worker&) { return true; }  // tests/models/sched/left_work.cpp is about that
  void wake(worker* sleeper) {
    if (sleeper != nullptr) sleeper->parker.notify();
  }
  // There is no poller here: tests/models/sched/poller.cpp has one.
  bool unattended() { return false; }
  void count_as_busy(worker&) {}  // no timers
  void take_what_came(worker&) {}
  sched::rested rest(worker& self, const std::chrono::nanoseconds* limit, bool) {
    if (limit != nullptr)
      return self.parker.wait_for(*limit) ? sched::rested::notified : sched::rested::over;
    self.parker.wait();
    return sched::rested::notified;
  }
  bool inbox_has_some() {
    const bool found_work = workers_[rl::thread_index()].mine != nullptr;
    if (models::mutated(found_work ? "no_look_after_stop_searching" : "no_look_after_sleep"))
      return false;
    return !inbox_.empty();
  }
  bool take_work(worker& self) {
    RL_ASSERT(++searching_ <= Searchers || Beside);
    const bool got = take_gift(self) || take_inbox(self);
    if (got) busy_.fetch_add(1, std::memory_order_relaxed);
    --searching_;
    return got;
  }

  bool take_gift(worker& self) {
    if (!Beside) return false;
    self.mine = self.gift;
    self.gift = nullptr;
    if (self.mine != nullptr) ++taken_;
    return self.mine != nullptr;
  }
  void hand_on(worker&) {
    if (std::exchange(calls_one_more_, false)) wake(idle_workers_.call_beside([](worker&) {}));
  }
  bool give(item& one) {
    const bool late = models::mutated("gift_after_call");
    worker* const to = idle_workers_.call_beside([&](worker& sleeper) {
      if (!late) sleeper.gift = &one;
    });
    if (to == nullptr) return false;
    if (late) to->gift = &one;
    wake(to);
    return true;
  }

  bool take_inbox(worker& self) {
    RL_ASSERT(self.mine == nullptr);
    self.mine = inbox_.take_all();
    for (item* one = self.mine; one != nullptr; one = one->next) ++taken_;
    return self.mine != nullptr;
  }

  void run_dry(worker& self) {
    do {
      if (taken_ == items_count) {
        all_taken_.open();
        ending_ = true;
        for (worker& one : workers_) one.parker.notify();
      }
      all_taken_.wait();
      self.mine = nullptr;
    } while (take_inbox(self));
    busy_.fetch_sub(1, std::memory_order_relaxed);
  }

  void before() {
    models::futex::early_left = 1;
    idle_workers_.set_searchers_max(Searchers);
  }

  void thread(unsigned index) {
    if (index >= Workers) {
      for (unsigned i = 0; i < ItemsEach; ++i) {
        item& one = items_[(index - Workers) * ItemsEach + i];
        if (Beside && i == 0 && give(one)) continue;
        inbox_.push(one);
        wake(idle_workers_.call());
      }
      return;
    }
    worker& self = workers_[index];
    sched::idle_life<idle_workers_model, worker, times> idle(*this, self);
    while (idle.find_work()) run_dry(self);
  }

  void after() { RL_ASSERT(taken_ == items_count); }
};

}  // namespace

int main() {
  models::weaken_if("no_fence_in_call", access::fence, "::call");
  models::weaken_if("no_fence_in_sleep", access::fence, "::sleep");
  models::weaken_if("no_fence_in_stop_searching", access::fence, "::stop_searching");
  models::weak_may_fail = false;
  // The numbers: workers, submitters, items of each; and the most searchers.
  const bool holds = models::check<idle_workers_model<2, 1, 2>>(models::deep(2)) &&
                     models::check<idle_workers_model<3, 1, 1>>(models::deep(2)) &&
                     models::check<idle_workers_model<2, 2, 1>>(1) &&
                     models::check<idle_workers_model<3, 1, 2>>(1) &&
                     models::check<idle_workers_model<2, 1, 2, true>>(models::deep(2)) &&
                     models::check<idle_workers_model<3, 1, 2, true>>(1) &&
                     models::check<idle_workers_model<2, 2, 1, true>>(1) &&
                     models::check<idle_workers_model<3, 1, 1, false, 2>>(models::deep(2)) &&
                     models::check<idle_workers_model<2, 2, 1, false, 2>>(1);
  return holds ? 0 : 1;
}
