// I/O that completes while workers rest: inside the poller, beside it, or while they are called
// away from it.
//
// A device makes things ready, one after the other. A submitter posts one item to the inbox, or
// there is no submitter. Idle workers run the same loop that ships, and rest by rest_inside(). A
// worker fetches what is ready inside the door, leaves, and begins one thing; others may take what
// it has not begun (fetched_events.cpp has the protocol of that). A worker that takes something is
// stuck until everything was taken. No worker watches by the clock for long, and no sleep without a
// limit ends by itself. So something that comes while an idle worker sleeps beside an open door is
// a deadlock, and so are something that is left behind a stuck worker, and a notify of a worker
// inside that does not wake it there.
// With shards, a worker first looks into one beside the door: here all that is ready lies in it.
// Checks D1, D2, P4, R4 for what is fetched, and that a worker that goes to work with I/O leaves
// the set of idle workers as it must (R1, R2).
//
// mutation: no_fence_in_leave
// mutation: no_look_back
// mutation: no_wake_inside
// mutation: no_call_for_fetched
// mutation: door_relaxed
#include "models/relacy_atomics.hpp"

#include <utility>

#include "base/parker.hpp"
#include "sched/inbox.hpp"
#include "sched/poller.hpp"
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
  item* mine = nullptr;
  bool begun = false;                        // something in which it is stuck
  models::atomic<std::uint32_t> fetched{0};  // things that it has not begun
};

struct times {
  static constexpr std::int64_t first = 1, last = 1, last_while_idle = 1, last_dozing = 2;
  static constexpr int idle_watches_max = 1;
};

// The kernel's side: what is ready, and which thread sleeps for it. The kernel's own words count as
// correct.
struct device {
  sched::basic_door<models::fenced_atomics> door;
  models::atomic<std::uint32_t> ready{0};  // twice the number of things; odd: the bell has rung
  models::guarded<unsigned> inside{0};     // only the thread that is inside touches it (D1)
  sched::basic_door<models::fenced_atomics> looked_into;  // of the shard

  void make_ready(std::uint32_t what) {
    ready.fetch_add(what, std::memory_order_seq_cst);
    ready.wake_one();
  }
  void wake() {
    ready.fetch_or(1, std::memory_order_seq_cst);
    ready.wake_one();
  }
  bool poll(models::atomic<std::uint32_t>& to) {
    inside = inside + 1;
    return fetch(to);
  }
  bool look(models::atomic<std::uint32_t>& to) {
    if (!looked_into.try_enter()) return false;
    const bool came = fetch(to);
    looked_into.leave();
    return came;
  }
  bool wait(models::atomic<std::uint32_t>& to, const std::chrono::nanoseconds* limit) {
    inside = inside + 1;
    std::uint32_t seen = ready.load(std::memory_order_seq_cst);
    if (seen == 0 && limit == nullptr) ready.wait(0);
    seen = ready.load(std::memory_order_seq_cst);
    while ((seen & 1) != 0 &&
           !ready.compare_exchange_strong(seen, seen & ~1u, std::memory_order_seq_cst))
      continue;
    return fetch(to);
  }
  bool fetch(models::atomic<std::uint32_t>& to) {
    std::uint32_t seen = ready.load(std::memory_order_seq_cst);
    while (seen / 2 != 0 &&
           !ready.compare_exchange_strong(seen, seen & 1, std::memory_order_seq_cst))
      continue;
    if (seen / 2 == 0) return false;
    to.store(seen / 2, std::memory_order_relaxed);
    return true;
  }
};

enum class divided : std::uint8_t { no, yes };

template <unsigned Workers, unsigned Things, unsigned Items, divided Shards = divided::no>
struct poller_model
    : rl::test_suite<poller_model<Workers, Things, Items, Shards>, Workers + 1 + Items> {
  sched::idle_workers<worker, models::fenced_atomics, models::mutex> idle_workers_;
  sched::inbox<item, models::fenced_atomics> inbox_;
  device io_;
  models::atomic<unsigned> busy_{0};
  models::latch all_taken_;
  worker workers_[Workers];
  item item_;
  bool ending_ = false;
  unsigned taken_ = 0;  // the model's own; all threads see it at once

  // The functions that idle_life needs from its pool.
  bool ending() { return ending_; }
  unsigned workers() { return 1; }
  bool anyone_busy() { return busy_.load(std::memory_order_relaxed) != 0; }
  bool inbox_has_some() { return !inbox_.empty(); }
  std::uint64_t turns_done() { return 0; }
  bool nothing_left(worker& self) {
    models::fenced_atomics::heavy_fence();
    for (worker& other : workers_) {
      if (&other != &self && other.fetched.load(std::memory_order_relaxed) != 0) return false;
    }
    return true;
  }
  bool unattended() { return !models::mutated("no_look_back") && io_.door.is_open(); }
  void wake(worker* sleeper) {
    if (sleeper != nullptr && sleeper->parker.notify() && !models::mutated("no_wake_inside"))
      io_.wake();
  }
  bool take_work(worker& self) {
    self.mine = inbox_.take_all();
    if (self.mine != nullptr) return take(self);
    if (Shards == divided::yes && io_.look(self.fetched)) {
      busy_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (io_.door.try_enter()) {
      if (io_.poll(self.fetched)) {
        take_what_came(self);
        return true;
      }
      io_.door.leave();
    }
    for (worker& victim : workers_) {
      if (&victim != &self && begin_one_of(victim)) return take(self);
    }
    return false;
  }
  bool take(worker& self) {
    ++taken_;
    self.begun = true;
    busy_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  static bool begin_one_of(worker& fetcher) {
    std::uint32_t seen = fetcher.fetched.load(std::memory_order_relaxed);
    while (seen != 0 &&
           !fetcher.fetched.compare_exchange_strong(seen, seen - 1, std::memory_order_seq_cst))
      continue;
    return seen != 0;
  }
  // These are tested in tests/models/sched/idle_workers.cpp.
  void take_gift(worker&) {}
  void hand_on(worker&) {}
  void count_as_busy(worker&) {}  // no timers
  void take_what_came(worker&) {
    busy_.fetch_add(1, std::memory_order_relaxed);
    io_.door.leave();
  }
  // As the pool does before it serves, behind the fence of the door.
  void serve(worker& self) {
    const bool is_left = self.fetched.load(std::memory_order_relaxed) > 1;
    if (is_left && !models::mutated("no_call_for_fetched") &&
        idle_workers_.lonely().load(std::memory_order_relaxed) != 0)
      wake(idle_workers_.call());
    self.begun = begin_one_of(self);
    if (self.begun) ++taken_;
  }
  sched::rested rest(worker& self, const std::chrono::nanoseconds* limit, bool inside) {
    if (inside && io_.door.try_enter())
      return sched::rest_inside(io_, self.fetched, self.parker, limit);
    if (limit != nullptr)
      return self.parker.wait_for(*limit) ? sched::rested::notified : sched::rested::over;
    self.parker.wait();
    return sched::rested::notified;
  }

  void before() { models::futex::early_left = 1; }

  void thread(unsigned index) {
    if (index == Workers) {
      for (unsigned i = 0; i < Things; ++i) io_.make_ready(2);
      return;
    }
    if (index > Workers) {
      inbox_.push(item_);
      wake(idle_workers_.call());
      return;
    }
    worker& self = workers_[index];
    sched::idle_life<poller_model, worker, times> idle(*this, self);
    while (idle.find_work()) {
      if (self.fetched.load(std::memory_order_relaxed) != 0) serve(self);
      if (!std::exchange(self.begun, false)) {  // others have taken all that it had fetched
        busy_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      if (taken_ == Things + Items) {
        ending_ = true;
        all_taken_.open();
        for (worker& one : workers_) {
          if (one.parker.notify()) io_.wake();
        }
      }
      all_taken_.wait();
      self.mine = nullptr;
    }
  }

  void after() { RL_ASSERT(taken_ == Things + Items); }
};

}  // namespace

int main() {
  models::weaken_if("no_fence_in_leave", access::fence, "::leave");
  models::weaken_if("door_relaxed", access::store, "::leave");
  models::weak_may_fail = false;
  // The numbers: workers, things, items.
  const bool holds = models::check<poller_model<2, 2, 0>>() &&
                     models::check<poller_model<2, 1, 1>>(1) &&
                     models::check<poller_model<3, 2, 0>>(1) &&
                     models::check<poller_model<2, 2, 0, divided::yes>>() &&
                     models::check<poller_model<3, 2, 0, divided::yes>>(1);
  return holds ? 0 : 1;
}
