// The gate of a runtime: an outside thread and a worker of the pool wake actors while the end
// begins.
// Checks G1 and G2: no thread touches an executor that has gone, and whatever was queued is
// discarded.
//
// mutation: enter_relaxed
// mutation: look_relaxed
// mutation: close_relaxed
// mutation: wait_relaxed
// mutation: leave_relaxed
// mutation: outsider_not_counted
// mutation: executors_go_before_workers
#include "models/relacy_atomics.hpp"

#include "actor/system/gate.hpp"
#include "sched/inbox.hpp"

namespace {

using namespace troupe;
using models::access;

using gate = actor::basic_gate<models::fenced_atomics>;

struct item {
  models::guarded<item*> next{nullptr};
  models::guarded<unsigned> discarded{0};
};

// Thread 0 ends the runtime, thread 1 is outside, and the others are the pool's workers.
struct gate_model : rl::test_suite<gate_model, 3> {
  gate entrance;
  gate::flag closing{false};
  models::atomic<bool> ending{false}, ended{false};
  models::guarded<unsigned> executor{1};  // 0 once it has gone
  models::guarded<unsigned> beside{1};    // as the executor, for outside threads alone
  sched::inbox<item, models::fenced_atomics> inbox;
  item items[3];
  models::guarded<unsigned> queued[3];

  void before() {
    for (models::guarded<unsigned>& one : queued) one = 0;
  }

  // Returns whether the item was queued.
  bool wake(unsigned number, gate::ends as) {
    const bool open = entrance.enter(closing, as);
    if (open) {
      RL_ASSERT(executor == 1);
      if (number == 0) RL_ASSERT(beside == 1);
      inbox.push(items[number]);
    }
    entrance.leave(as);
    return open;
  }

  void end() {
    entrance.close(closing);
    beside = 0;  // no outside thread is inside, or comes
    // order: release, acquire  the pool's end, which joins its threads
    ending.store(true, std::memory_order_release);
    if (models::mutated("executors_go_before_workers")) executor = 0;
    for (int spin = 0; !ended.load(std::memory_order_acquire); ++spin)
      models::fenced_atomics::wait_a_little(spin);
    while (item* list = inbox.take_all()) {
      for (item* one = list; one != nullptr; one = one->next) one->discarded = one->discarded + 1;
    }
    executor = 0;
    for (unsigned i = 0; i < 3; ++i) {
      // outside threads are not joined: the gate alone tells what they did
      RL_ASSERT(i == 0 || queued[i] == items[i].discarded);
    }
  }

  void thread(unsigned index) {
    if (index == 0) return end();
    if (index == 1) {
      const bool counted = !models::mutated("outsider_not_counted");
      queued[0] = wake(0, counted ? gate::ends::by_leave : gate::ends::with_pool);
      return;
    }
    for (unsigned i = 1; i < 3; ++i) queued[i] = wake(i, gate::ends::with_pool);
    // order: release, acquire  as above
    for (int spin = 0; !ending.load(std::memory_order_acquire); ++spin)
      models::fenced_atomics::wait_a_little(spin);
    ended.store(true, std::memory_order_release);
  }

  void after() {
    for (unsigned i = 0; i < 3; ++i) RL_ASSERT(queued[i] == items[i].discarded);
  }
};

}  // namespace

int main() {
  models::weaken_if("enter_relaxed", access::arithmetic, "::enter(");
  models::weaken_if("look_relaxed", access::load, "::enter(");
  models::weaken_if("close_relaxed", access::store, "::close(");
  models::weaken_if("wait_relaxed", access::load, "::wait()");
  models::weaken_if("leave_relaxed", access::arithmetic, "::leave(");
  models::weak_may_fail = false;
  return models::check<gate_model>(models::deep(3)) ? 0 : 1;
}
