// The queue of wake hints, with less space than what is pushed: threads leave mail for an item and
// push the item; a taker looks when the queue is not empty.
// Checks N1 and N2: all mail is seen in the end.
//
// mutation: push_relaxed
// mutation: take_relaxed
// mutation: lost_relaxed
// mutation: end_relaxed
#include "models/relacy_atomics.hpp"

#include "sched/stealing/wake_hint_queue.hpp"

namespace {

using namespace troupe;
using models::access;

struct item {
  // Written before the wake hint; the thread that takes the hint sees it.
  models::guarded<unsigned> work{0};
  models::atomic<unsigned> mail{0};  // what a look at all items reads; the value may be an old one
  bool seen = false;
};

template <std::size_t Size, unsigned Pushers, unsigned ItemsEach>
struct wake_hint_queue_model
    : rl::test_suite<wake_hint_queue_model<Size, Pushers, ItemsEach>, Pushers + 1> {
  sched::wake_hint_queue<item, Size, models::fenced_atomics> box;
  item items[Pushers * ItemsEach];

  void push(item& one) {
    one.work = 1;
    one.mail.store(1, std::memory_order_relaxed);
    box.push(one);
  }

  void take() {
    if (box.empty()) return;
    const bool some_lost = box.take([](item& one) {
      RL_ASSERT(one.work == 1);
      one.seen = true;
    });
    if (!some_lost) return;
    for (item& one : items) {
      if (one.mail.load(std::memory_order_relaxed) == 1) one.seen = true;
    }
  }

  void thread(unsigned index) {
    if (index < Pushers) {
      for (unsigned i = 0; i < ItemsEach; ++i) push(items[index * ItemsEach + i]);
    } else {
      take();
      take();
    }
  }

  void after() {
    take();
    RL_ASSERT(box.empty());
    for (item& one : items) RL_ASSERT(one.seen);
  }
};

}  // namespace

int main() {
  models::weaken_if("push_relaxed", access::exchange, "push");
  models::weaken_if("take_relaxed", access::exchange, "take");
  models::weaken_if("lost_relaxed", access::arithmetic, "push");
  models::weaken_if("end_relaxed", access::load, "take");
  // The numbers: places in the queue, pushers, items of each.
  const bool holds = models::check<wake_hint_queue_model<1, 3, 1>>() &&
                     models::check<wake_hint_queue_model<2, 3, 1>>() &&
                     models::check<wake_hint_queue_model<1, 2, 2>>(3);
  return holds ? 0 : 1;
}
