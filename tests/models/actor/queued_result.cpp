// The result of a task that waits for its first turn: the worker that begins the task, and a taker
// that leaves. When the task has begun, its block serves another task, which the first task's taker
// does not know.
// Checks Q1 and Q2: one of the two sides has the state, and neither takes what belongs to the other
// task.
//
// mutation: take_unchecked
// mutation: give_up_unchecked
// mutation: give_up_whatever_is_there
#include "models/relacy_atomics.hpp"

#include "actor/spawned/queued_result.hpp"

namespace {

using namespace troupe;
using word = models::atomic<std::uintptr_t>;

struct state {
  models::guarded<bool> there{false};
};

using shipped = actor::queued_result<state, word>;

// The shipped class, with the mutations that do not concern memory orders.
struct result : shipped {
  explicit result(word& in) : shipped(in), word_(in) {}
  state* take() {
    if (!models::mutated("take_unchecked")) return shipped::take();
    state* const seen = peek();
    word_.store(0, std::memory_order_release);
    return seen;
  }
  bool give_up(state& of) {
    if (models::mutated("give_up_whatever_is_there"))
      return word_.exchange(0, std::memory_order_acq_rel) != 0;
    if (!models::mutated("give_up_unchecked")) return shipped::give_up(of);
    if (word_.load(std::memory_order_acquire) != reinterpret_cast<std::uintptr_t>(&of))
      return false;
    word_.store(0, std::memory_order_release);
    return true;
  }
  word& word_;
};

// Thread 0 is the worker. Each other thread is the taker of one task.
template <unsigned Tasks>
struct queued_result_model : rl::test_suite<queued_result_model<Tasks>, Tasks + 1> {
  word word_{0};
  state states_[Tasks];
  models::latch handed_out_[Tasks];
  // The model's own, not checked for races.
  unsigned begun_with_[Tasks] = {}, given_up_[Tasks] = {};

  void work() {
    for (unsigned i = 0; i < Tasks; ++i) {
      states_[i].there = true;
      result(word_).set(states_[i]);
      handed_out_[i].open();
      if (state* mine = result(word_).take()) {
        RL_ASSERT(mine == &states_[i]);
        RL_ASSERT(mine->there);
        mine->there = false;
        ++begun_with_[i];
      }
    }
  }

  void go(unsigned i) {
    handed_out_[i].wait();
    if (!result(word_).give_up(states_[i])) return;
    states_[i].there = false;
    ++given_up_[i];
  }

  void thread(unsigned index) { index == 0 ? work() : go(index - 1); }

  void after() {
    for (unsigned i = 0; i < Tasks; ++i) RL_ASSERT(begun_with_[i] + given_up_[i] == 1);
  }
};

}  // namespace

int main() {
  return models::check<queued_result_model<1>>(models::deep(4)) &&
                 models::check<queued_result_model<2>>(models::deep(3))
             ? 0
             : 1;
}
