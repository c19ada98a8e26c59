// The number of operations that wait, with the count of outstanding work: two workers keep their
// changes in shares of their own while they are busy.
// Checks O1 to O3: the program is not taken for out of work while an operation waits or a handler
// is left, and it is when there are none, whichever worker settles first.
//
// mutation: settled_after_leave
// mutation: completed_before_busy
// mutation: never_settled
// mutation: add_relaxed
// mutation: add_releases_nothing
// mutation: add_acquires_nothing
// mutation: leave_relaxed
#include "models/relacy_atomics.hpp"

#include "base/parker.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/waiting_operations.hpp"

namespace {

using namespace troupe;
using models::access;

using parker = base::basic_parker<models::fenced_atomics, models::futex>;
using operations = sched::basic_waiting_operations<models::fenced_atomics>;

// Worker 1 begins an operation in each of its two turns. Worker 2 sleeps in the poller, completes
// what comes there, and handles it. The second operation may be completed by worker 1 itself.
struct waiting_operations_model : rl::test_suite<waiting_operations_model, 3> {
  static constexpr unsigned all = 2;
  sched::basic_outstanding_work<models::fenced_atomics> alive;
  operations waiting;
  operations::share shares[2];
  parker end;
  models::atomic<unsigned> begun{0}, completed{0};
  models::guarded<unsigned> handled[all];
  bool over = false;  // the model's own; all threads see it at once

  void before() {
    for (models::guarded<unsigned>& one : handled) one = 0;
    for (operations::share& one : shares) waiting.adopt(one);
    alive.enter();  // worker 1 is busy
  }

  void leave() {
    if (alive.leave()) end.notify();
  }
  void carry_out(operations::next step) {
    if (step == operations::next::hold) alive.enter();
    if (step == operations::next::release) leave();
  }
  void become_idle(operations::share& own) {
    const bool late = models::mutated("settled_after_leave");
    if (late) leave();
    if (!models::mutated("never_settled") && !own.is_settled()) carry_out(waiting.settle(own));
    if (!late) leave();
  }

  void begin(operations::share& own) {
    carry_out(waiting.add(&own, 1));
    // order: release  what the system does with an operation
    begun.fetch_add(1u, std::memory_order_release);
  }

  // Takes an operation that was begun, as the thread inside the poller does. The worker is counted
  // as busy before it serves the event.
  bool serve(operations::share& own, bool busy) {
    // order: acquire, relaxed  the system's
    unsigned done = completed.load(std::memory_order_relaxed);
    if (done >= begun.load(std::memory_order_acquire)) return false;
    if (!completed.compare_exchange_strong(done, done + 1, std::memory_order_relaxed)) return false;
    const bool early = !busy && models::mutated("completed_before_busy");
    if (early) carry_out(waiting.add(nullptr, -1));
    if (!busy) alive.enter();
    if (!early) carry_out(waiting.add(&own, -1));
    handled[done] = handled[done] + 1;
    return true;
  }

  void thread(unsigned index) {
    if (index == 0) {
      while (!alive.empty()) end.wait();
      for (models::guarded<unsigned>& one : handled) RL_ASSERT(one == 1);
      over = true;
    } else if (index == 1) {
      for (unsigned i = 0; i < all; ++i) begin(shares[0]);
      serve(shares[0], true);
      become_idle(shares[0]);
    } else {
      while (!over) {
        bool busy = false;
        while (serve(shares[1], busy)) busy = true;
        if (busy) become_idle(shares[1]);
        rl::yield(1, RL_INFO);
      }
    }
  }

  void after() { RL_ASSERT(over && alive.empty() && waiting.count() == 0); }
};

}  // namespace

int main() {
  models::weaken_if("add_relaxed", access::arithmetic, "add_to_all");
  models::weaken_if("add_releases_nothing", access::arithmetic, "add_to_all",
                    std::memory_order_release);
  models::weaken_if("add_acquires_nothing", access::arithmetic, "add_to_all",
                    std::memory_order_acquire);
  models::weaken_if("leave_relaxed", access::arithmetic, "basic_outstanding_work");
  models::weak_may_fail = false;
  return models::check<waiting_operations_model>(models::deep(3)) ? 0 : 1;
}
