// The biased lock: an owner that enters again and again, a searcher that asks it, and one that
// revokes the lock, with fences of their own and with the kernel's.
// Checks B1 and B3: one thread is inside at a time, and each sees what the one before did.
//
// mutation: no_light_fence
// mutation: no_heavy_fence
// mutation: leave_relaxed
// mutation: revoke_relaxed
// mutation: restore_relaxed
// mutation: enter_relaxed
// mutation: answer_relaxed
// mutation: await_answer_relaxed
// mutation: withdraw_relaxed
#include "models/relacy_atomics.hpp"

#include "sched/biased_lock.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned owner_rounds = 2;

template <class Atomics>
struct biased_lock_model : rl::test_suite<biased_lock_model<Atomics>, 3> {
  sched::biased_lock<Atomics> lock;
  models::guarded<unsigned> visits{0};
  unsigned inside = 0, entered = 0;  // the model's own; all threads see it at once

  void visit() {
    RL_ASSERT(++inside == 1);
    visits = visits + 1;
    ++entered;
    models::pass_time();
    --inside;
  }

  void thread(unsigned index) {
    if (index == 0) {
      for (unsigned round = 0; round < owner_rounds; ++round) {
        lock.enter();
        visit();
        lock.leave();
      }
      return;
    }
    if (index == 1 ? !lock.ask_or_revoke() : !lock.try_revoke()) return;
    visit();
    lock.restore();
  }

  void after() { RL_ASSERT(visits == entered); }
};

}  // namespace

int main() {
  models::weaken_if("no_light_fence", access::fence, "enter_fenced");
  models::weaken_if("no_heavy_fence", access::fence, "try_revoke");
  models::weaken_if("leave_relaxed", access::store, "leave");
  models::weaken_if("revoke_relaxed", access::load, "try_revoke");
  models::weaken_if("restore_relaxed", access::store, "restore");
  models::weaken_if("enter_relaxed", access::load, "enter_");
  models::weaken_if("answer_relaxed", access::compare_exchange, "::answer");
  models::weaken_if("await_answer_relaxed", access::load, "await_answer");
  models::weaken_if("withdraw_relaxed", access::compare_exchange, "withdraw");
  const bool holds = models::check<biased_lock_model<models::fenced_atomics>>(models::deep(3)) &&
                     models::check<biased_lock_model<models::kernel_atomics>>(models::deep(3));
  return holds ? 0 : 1;
}
