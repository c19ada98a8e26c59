// The census: a pinned thread hands work to idle workers and goes idle; the work makes more work. Whoever
// brings the count to zero announces the end.
// Checks C1 and C2: the end is announced once, when everything is done, and what was done is seen then.
//
// mutation: counted_after_push
// mutation: leave_relaxed
// mutation: taken_before_busy
#include "models/relacy_atomics.hpp"

#include "sched/census.hpp"
#include "sched/inbox.hpp"

namespace {

using namespace troupe;
using models::access;

struct item {
  models::guarded<item*> next{nullptr};
  models::guarded<unsigned> done{0};
};

struct census_model : rl::test_suite<census_model, 3> {
  sched::basic_census<models::fenced_atomics> alive;
  sched::inbox<item, models::fenced_atomics> inbox;
  item items[2];
  models::guarded<unsigned> announced{0};

  void before() { alive.enter(); }  // the pinned thread is busy

  void hand_over(item& work) {
#if !defined(MUTATION_counted_after_push)
    alive.enter();
#endif
    inbox.push(work);
#if defined(MUTATION_counted_after_push)
    alive.enter();
#endif
  }

  void leave() {
    if (!alive.leave()) return;
    announced = announced + 1;
    for (item& work : items) RL_ASSERT(work.done == 1);
  }

  // As work_stealing::take_inbox and what follows it.
  bool work_once() {
    item* list = inbox.take_all();
    if (list == nullptr) return false;
#if !defined(MUTATION_taken_before_busy)
    alive.enter();
#endif
    std::int64_t taken = 0;
    for (item* work = list; work != nullptr; work = work->next) ++taken;
    const bool last = alive.leave(taken);
#if defined(MUTATION_taken_before_busy)
    if (last) return announced = announced + 1, true;
    alive.enter();
#endif
    RL_ASSERT(!last);
    while (list != nullptr) {
      item* next = list->next;
      list->done = list->done + 1;
      if (list == &items[0]) hand_over(items[1]);
      list = next;
    }
    leave();
    return true;
  }

  void thread(unsigned index) {
    if (index == 0) {
      hand_over(items[0]);
      leave();
    } else {
      work_once();
      work_once();
    }
  }

  void after() {
    while (work_once()) {
    }
    RL_ASSERT(alive.empty() && announced == 1);
    for (item& work : items) RL_ASSERT(work.done == 1);
  }
};

}  // namespace

int main() {
#if defined(MUTATION_leave_relaxed)
  models::weakened = {access::arithmetic, "leave"};
#endif
  return models::check<census_model>(3) ? 0 : 1;
}
