// The inbox: two threads push, two take.
// Checks I1 and I2, that each item comes out once, and that a node may be pushed again as soon as
// it is taken.
//
// mutation: push_relaxed
// mutation: take_relaxed
#include "models/relacy_atomics.hpp"

#include "sched/inbox.hpp"

namespace {

using namespace troupe;
using models::access;

struct node {
  models::guarded<node*> next{nullptr};
  models::guarded<unsigned> from{0}, number{0}, taken{0};
};

using inbox = sched::inbox<node, models::fenced_atomics>;

constexpr unsigned pushers = 2, items_each = 2;

struct inbox_model : rl::test_suite<inbox_model, 4> {
  inbox box;
  node nodes[pushers][items_each];

  void push_all(unsigned from) {
    for (unsigned i = 0; i < items_each; ++i) {
      node& item = nodes[from][i];
      item.from = from;
      item.number = i;
      box.push(item);
    }
  }

  // One take returns the items of each pusher in their order.
  void take() {
    int last[pushers] = {-1, -1};
    for (node* item = box.take_all(); item != nullptr; item = item->next) {
      const auto number = static_cast<int>(item->number);
      RL_ASSERT(number > last[item->from]);
      last[item->from] = number;
      item->taken = item->taken + 1;
    }
  }

  void thread(unsigned index) { index < pushers ? push_all(index) : take(); }

  void after() {
    take();
    RL_ASSERT(box.empty());
    for (auto& of_one : nodes) {
      for (node& item : of_one) RL_ASSERT(item.taken == 1);
    }
  }
};

// A taker pushes a node that it has just taken, while another thread pushes and a third one takes.
struct reuse_model : rl::test_suite<reuse_model, 3> {
  inbox box;
  node first, second;
  unsigned pushes_of_first = 0;

  void push_first() {
    ++pushes_of_first;
    box.push(first);
  }

  void take(bool push_again) {
    for (node* item = box.take_all(); item != nullptr;) {
      node* next = item->next;
      item->taken = item->taken + 1;
      if (push_again && item == &first) push_first();
      item = next;
    }
  }

  void before() { push_first(); }

  void thread(unsigned index) {
    index == 0 ? static_cast<void>(box.push(second)) : take(index == 1);
  }

  void after() {
    take(false);
    RL_ASSERT(box.empty() && first.taken == pushes_of_first && second.taken == 1);
  }
};

}  // namespace

int main() {
  models::weaken_if("push_relaxed", access::compare_exchange, "push");
  models::weaken_if("take_relaxed", access::exchange, "take_all");
  return models::check<inbox_model>(3) && models::check<reuse_model>(4) ? 0 : 1;
}
