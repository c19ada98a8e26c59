// The nudge box: two threads push, one of them more often than the box has places, and one takes.
// Checks N1 (each nudge is taken, or a later take says that some were lost) and N2.
//
// mutation: push_relaxed
// mutation: take_relaxed
#include "models/relacy_atomics.hpp"

#include "sched/nudge_box.hpp"

namespace {

using namespace troupe;
using models::access;

struct item {
  models::guarded<unsigned> work{0};  // done before the nudge, seen by who takes it
  models::atomic<unsigned> mail{0};   // what a look at all goes by
  models::guarded<unsigned> looked{0};
};

struct nudge_model : rl::test_suite<nudge_model, 3> {
  sched::nudge_box<item, 1, models::fenced_atomics> box;
  item items[4];

  void push(unsigned index) {
    items[index].work = 1;
    items[index].mail.store(1, std::memory_order_relaxed);
    box.push(items[index]);
  }

  void take() {
    const bool some_lost = box.take([](item& one) {
      RL_ASSERT(one.work == 1);
      one.looked = 1;
    });
    if (!some_lost) return;
    for (item& one : items) {
      if (one.mail.load(std::memory_order_relaxed) == 1) one.looked = 1;
    }
  }

  void thread(unsigned index) {
    if (index == 0) {
      push(0);
    } else if (index == 1) {
      for (unsigned i = 1; i < 4; ++i) push(i);
    } else {
      take();
      take();
    }
  }

  void after() {
    take();
    RL_ASSERT(box.empty());
    for (item& one : items) RL_ASSERT(one.looked == 1);
  }
};

}  // namespace

int main() {
#if defined(MUTATION_push_relaxed)
  models::weakened = {access::exchange, "push"};
#elif defined(MUTATION_take_relaxed)
  models::weakened = {access::exchange, "take"};
#endif
  return models::check<nudge_model>(3) ? 0 : 1;
}
