// The nudge box, smaller than what is pushed: threads leave mail for an item and push it; a taker looks when the
// box is not empty.
// Checks N1 and N2: all mail is seen in the end.
//
// mutation: push_relaxed
// mutation: take_relaxed
#include "models/relacy_atomics.hpp"

#include "sched/nudge_box.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned pushers = 3;

struct item {
  models::atomic<unsigned> mail{0};
  bool seen = false;
};

template <std::size_t Size>
struct nudge_box_model : rl::test_suite<nudge_box_model<Size>, pushers + 1> {
  sched::nudge_box<item, Size, models::fenced_atomics> box;
  item items[pushers];

  // Looks as a worker does: a mailbox may be seen as it was, unless something orders the look behind the mail.
  static bool look(item& one) { return one.seen = one.mail.load(std::memory_order_relaxed) == 1 || one.seen; }

  void take() {
    if (box.empty()) return;
    if (box.take([](item& one) { RL_ASSERT(look(one)); })) {
      for (item& one : items) look(one);
    }
  }

  void thread(unsigned index) {
    if (index < pushers) {
      items[index].mail.store(1, std::memory_order_relaxed);
      box.push(items[index]);
    } else {
      take();
      take();
    }
  }

  void after() {
    take();
    for (item& one : items) RL_ASSERT(one.seen);
  }
};

}  // namespace

int main() {
#if defined(MUTATION_push_relaxed)
  models::weakened = {access::exchange, "push"};
#elif defined(MUTATION_take_relaxed)
  models::weakened = {access::exchange, "take"};
#endif
  return models::check<nudge_box_model<1>>() && models::check<nudge_box_model<2>>() ? 0 : 1;
}
