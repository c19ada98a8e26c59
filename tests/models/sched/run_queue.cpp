// The run queue inside the biased lock: the owner pushes and pops, a searcher takes half.
// Checks that each runnable is handled once, whole, and in the order in which it was pushed, also
// while the ring grows.
//
// mutation: leave_relaxed
// mutation: restore_relaxed
// mutation: no_heavy_fence
// mutation: steal_unlocked
#include "models/relacy_atomics.hpp"

#include "sched/biased_lock.hpp"
#include "sched/stealing/run_queue.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned items_count = 4;

struct item {
  models::guarded<unsigned> number{0};
  models::guarded<unsigned> handled{0};
};

struct run_queue_model : rl::test_suite<run_queue_model, 2> {
  sched::biased_lock<models::fenced_atomics> lock;
  sched::basic_run_queue<item, 1, models::fenced_atomics> queue;
  item items[items_count];

  void push(unsigned number) {
    items[number].number = number;
    lock.enter();
    RL_ASSERT(queue.keep_room(queue.count() + 1));
    queue.push(items[number]);
    lock.leave();
  }

  static void handle(item& one, int& last) {
    const auto number = static_cast<int>(one.number);
    RL_ASSERT(number > last);
    last = number;
    one.handled = one.handled + 1;
  }

  void own() {
    int last = -1;
    for (unsigned number = 0; number + 1 < items_count; ++number) push(number);
    for (bool more = true;;) {
      lock.enter();
      item* one = queue.pop();
      lock.leave();
      if (one != nullptr) {
        handle(*one, last);
      } else if (!more) {
        return;
      }
      if (more) push(items_count - 1);
      more = false;
    }
  }

  void steal() {
    if (queue.count() == 0) return;
    const bool unlocked = models::mutated("steal_unlocked");
    if (!unlocked && !lock.try_revoke()) return;
    item* taken[items_count];
    const std::size_t half = (queue.count() + 1) / 2;
    for (std::size_t i = 0; i < half; ++i) taken[i] = queue.pop();
    if (!unlocked) lock.restore();
    int last = -1;
    for (std::size_t i = 0; i < half; ++i) handle(*taken[i], last);
  }

  void thread(unsigned index) { index == 0 ? own() : steal(); }

  void after() {
    for (item& one : items) RL_ASSERT(one.handled == 1);
  }
};

}  // namespace

int main() {
  models::weaken_if("leave_relaxed", access::store, "leave");
  models::weaken_if("restore_relaxed", access::store, "restore");
  models::weaken_if("no_heavy_fence", access::fence, "try_revoke");
  return models::check<run_queue_model>(models::deep(3)) ? 0 : 1;
}
