// A runner that puts a job aside because memory is short, and ends, beside a thread that gives
// memory back and calls a runner.
// Checks G1, and that a runner checks at its end for jobs that lie aside: no job lies aside when
// all threads have ended and there is memory.
//
// mutation: short_relaxed
// mutation: give_relaxed
// mutation: put_aside_relaxed
// mutation: aside_unseen
// mutation: no_look_after_end
// mutation: no_light_fence
// mutation: no_heavy_fence
#include "models/relacy_atomics.hpp"

#include "jobs/pool/memory_gate.hpp"
#include "jobs/pool/runner_count.hpp"

namespace {

using namespace troupe;
using models::access;

// At most `Most` runners exist. If that is one, the thread that gives memory back can call no other
// runner while the first one exists.
template <class Atomics, unsigned Most>
struct gate_model : rl::test_suite<gate_model<Atomics, Most>, 2> {
  jobs::memory_gate<Atomics> gate_{10};
  jobs::runner_count<Atomics> runners_{Most};
  models::mutex mutex_;
  models::guarded<unsigned> list_{0};  // jobs that are set aside
  unsigned ran_ = 0;                   // the model's own, not checked for races

  gate_model() { gate_.take(11); }

  bool take_up() {
    if (!gate_.some_aside()) return false;
    mutex_.lock();
    const bool one = list_ != 0;
    if (one) {
      list_ = list_ - 1;
      gate_.took_up();
      ++ran_;
    }
    mutex_.unlock();
    return one;
  }
  bool some_left() { return gate_.some_aside() && !gate_.is_short(); }

  // The caller has called the runner. It runs or sets aside jobs as job_pool does.
  void run(unsigned jobs) {
    do {
      for (; jobs != 0; --jobs) {
        if (!gate_.is_short()) {
          ++ran_;
          continue;
        }
        mutex_.lock();
        list_ = list_ + 1;
        gate_.put_aside();
        mutex_.unlock();
      }
      while (some_left() && take_up()) {
      }
      runners_.end();
      if (models::mutated("no_look_after_end")) return;
    } while (some_left() && runners_.begin());
  }

  void give() {
    if (gate_.give(5) && runners_.may_call() && runners_.begin()) run(0);
  }

  void thread(unsigned index) {
    if (index == 1) return give();
    runners_.begin();
    run(1);
  }
  void after() { RL_ASSERT(ran_ == 1 && list_ == 0); }
};

}  // namespace

int main() {
  models::weaken_if("short_relaxed", access::load, "::is_short");
  models::weaken_if("give_relaxed", access::arithmetic, "::give");
  models::weaken_if("put_aside_relaxed", access::arithmetic, "::put_aside");
  models::weaken_if("aside_unseen", access::load, "::give");
  models::weaken_if("no_light_fence", access::fence, "may_call");
  models::weaken_if("no_heavy_fence", access::fence, "end");
  const bool holds = models::check<gate_model<models::fenced_atomics, 2>>(4) &&
                     models::check<gate_model<models::kernel_atomics, 2>>(3) &&
                     models::check<gate_model<models::fenced_atomics, 1>>(4) &&
                     models::check<gate_model<models::kernel_atomics, 1>>(3);
  return holds ? 0 : 1;
}
