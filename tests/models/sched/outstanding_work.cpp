// The count of outstanding work: the thread that brings the count to zero has seen the end, and
// wakes the thread that waits for it.
// Checks C1 and C2: the end is announced once, when everything is done, and the thread that waits
// sees what was done.
//
// mutation: counted_after_push
// mutation: counted_after_restore
// mutation: kept_no_count
// mutation: leave_relaxed
// mutation: empty_relaxed
#include "models/relacy_atomics.hpp"

#include "base/parker.hpp"
#include "sched/biased_lock.hpp"
#include "sched/inbox.hpp"
#include "sched/outstanding_work.hpp"

namespace {

using namespace troupe;
using models::access;

struct item {
  models::guarded<item*> next{nullptr};
  models::guarded<unsigned> done{0};
};

using parker = base::basic_parker<models::fenced_atomics, models::futex>;

template <unsigned Items>
struct program {
  sched::basic_outstanding_work<models::fenced_atomics> alive;
  parker end;
  item items[Items];
  unsigned announced = 0;
  bool over = false;  // the model's own; all threads see it at once

  void leave() {
    if (!alive.leave()) return;
    ++announced;
    end.notify();
  }

  static void handle(item& one) { one.done = one.done + 1; }

  // As in run(): the thread that sees the end sees everything that was done.
  void wait_for_end() {
    while (!alive.empty()) end.wait();
    for (item& one : items) RL_ASSERT(one.done == 1);
    over = true;
  }

  void check_after() { RL_ASSERT(over && announced == 1 && alive.empty()); }
};

// A pinned thread hands an item to idle workers, whose work makes another item, and then it is
// done. An outside thread has a hold, hands over an item and releases the hold.
template <unsigned Workers, bool Hold>
struct hand_over_model : rl::test_suite<hand_over_model<Workers, Hold>, 2 + Workers + Hold>,
                         program<2 + Hold> {
  sched::inbox<item, models::fenced_atomics> inbox;
  parker parkers[Workers];

  void before() { this->alive.enter(1 + Hold); }

  void hand_over(item& work) {
    const bool counted_late = models::mutated("counted_after_push");
    if (!counted_late) this->alive.enter();
    inbox.push(work);
    if (counted_late) this->alive.enter();
    for (parker& one : parkers) one.notify();
  }

  // As in work_stealing: an idle worker takes the inbox, and then again until it is empty.
  void work(parker& mine) {
    while (!this->over) {
      bool busy = false;
      while (item* list = inbox.take_all()) {
        std::int64_t taken = 0;
        for (item* one = list; one != nullptr; one = one->next) ++taken;
        const bool keeps_none = models::mutated("kept_no_count");
        this->alive.take_over(taken, busy || keeps_none);
        if (keeps_none && !busy) this->alive.enter();
        busy = true;
        while (list != nullptr) {
          item* next = list->next;
          this->handle(*list);
          if (list == &this->items[0]) hand_over(this->items[1]);
          list = next;
        }
      }
      if (busy) this->leave();
      mine.wait();
    }
  }

  void thread(unsigned index) {
    if (index == 0) {
      this->wait_for_end();
      for (parker& one : parkers) one.notify();
    } else if (index <= Workers) {
      work(parkers[index - 1]);
    } else {
      hand_over(this->items[index == Workers + 1 ? 0 : 2]);
      this->leave();
    }
  }

  void after() { this->check_after(); }
};

// An idle worker steals from a busy one, which finds itself idle afterwards.
struct steal_model : rl::test_suite<steal_model, 3>, program<2> {
  sched::biased_lock<models::fenced_atomics> lock;
  models::guarded<unsigned> left{2};  // how many of the items are left, from the front

  void before() { alive.enter(); }

  item* pop() { return left == 0 ? nullptr : &items[left = left - 1]; }

  void own() {
    for (item* one = nullptr;;) {
      lock.enter();
      one = pop();
      lock.leave();
      if (one == nullptr) return leave();
      handle(*one);
    }
  }

  void steal() {
    if (!lock.try_revoke()) return;
    item* one = pop();
    const bool counted_late = models::mutated("counted_after_restore");
    if (one != nullptr && !counted_late) alive.enter();
    lock.restore();
    if (one != nullptr && counted_late) alive.enter();
    if (one == nullptr) return;
    handle(*one);
    leave();
  }

  void thread(unsigned index) {
    if (index == 0) return wait_for_end();
    index == 1 ? own() : steal();
  }

  void after() { check_after(); }
};

}  // namespace

int main() {
  models::weaken_if("leave_relaxed", access::arithmetic, "leave");
  models::weaken_if("empty_relaxed", access::load, "empty() const [with Atomics");
  models::weak_may_fail = false;
  const bool holds = models::check<hand_over_model<1, true>>() &&
                     models::check<hand_over_model<2, false>>() && models::check<steal_model>(3);
  return holds ? 0 : 1;
}
