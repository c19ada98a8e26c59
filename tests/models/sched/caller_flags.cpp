// The flags of the worker of a pool without a thread (src/sched/stealing/caller_flags.hpp). Two
// threads each arm a timer inside the timers' lock, set the flag and notify; the worker expires the
// armed timers, and sleeps when no flag is set. Another thread asks the worker back, for a reason.
// Checks F1 (a timer that is missed is a deadlock) and F2 (the reason is read without a race).
//
// mutation: cleared_behind_the_lock
// mutation: silent_flag
// mutation: silent_ask_back
// mutation: ask_back_relaxed
// mutation: returned_relaxed
#include "models/relacy_atomics.hpp"

#include "base/parker.hpp"
#include "sched/stealing/caller_flags.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned armers = 2;

struct caller_flags_model : rl::test_suite<caller_flags_model, armers + 1> {
  sched::basic_caller_flags<models::fenced_atomics> flags;
  base::basic_parker<models::fenced_atomics, models::futex> parker;
  models::mutex timers;
  models::guarded<unsigned> armed{0};
  unsigned expired = 0;

  void arm() {
    timers.lock();
    armed = armed + 1;
    timers.unlock();
    flags.expire_soon();
    if (!models::mutated("silent_flag")) parker.notify();
  }

  void expire() {
    const bool early = !models::mutated("cleared_behind_the_lock");
    if (early) flags.begin_expiring();
    timers.lock();
    expired += armed;
    armed = 0;
    timers.unlock();
    if (!early) flags.begin_expiring();
  }

  void thread(unsigned index) {
    if (index != 0) return arm();
    while (expired != armers) {
      if (flags.expires_soon()) {
        expire();
      } else {
        parker.wait();
      }
    }
  }
};

// The reason is written without a lock, as the count of outstanding work is brought to zero.
struct asked_back_model : rl::test_suite<asked_back_model, 2> {
  sched::basic_caller_flags<models::fenced_atomics> flags;
  base::basic_parker<models::fenced_atomics, models::futex> parker;
  models::guarded<unsigned> reason{0};

  void thread(unsigned index) {
    if (index != 0) {
      reason = 1;
      flags.ask_back();
      if (!models::mutated("silent_ask_back")) parker.notify();
      return;
    }
    // A worker that is not asleep finds the flag without the parker.
    while (!flags.is_asked_back()) parker.wait();
    flags.returned();
    RL_ASSERT(reason == 1);
    RL_ASSERT(!flags.is_asked_back());
  }
};

}  // namespace

int main() {
  models::weaken_if("ask_back_relaxed", access::store, "ask_back");
  models::weaken_if("returned_relaxed", access::exchange, "returned");
  return models::check<caller_flags_model>(3) && models::check<asked_back_model>(3) ? 0 : 1;
}
