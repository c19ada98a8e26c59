// A thread that queues jobs beside a runner that ends, with fences of their own and with the kernel's.
// Checks R1: no job is left in the queue when all have ended.
//
// mutation: no_light_fence
// mutation: no_heavy_fence
// mutation: no_look_after_end
#include "models/relacy_atomics.hpp"

#include "jobs/runner_count.hpp"

namespace {

using namespace troupe;
using models::access;

template <class Atomics, unsigned Jobs>
struct runner_model : rl::test_suite<runner_model<Atomics, Jobs>, 2> {
  jobs::runner_count<Atomics> runners_{1};
  models::atomic<unsigned> queued_{0};

  bool some_left() { return queued_.load(std::memory_order_relaxed) != 0; }

  // The caller has begun it.
  void run() {
    do {
      while (some_left()) queued_.exchange(0, std::memory_order_relaxed);
      runners_.end();
      if (models::mutated("no_look_after_end")) return;
    } while (some_left() && runners_.begin());
  }

  void submit() {
    for (unsigned i = 0; i < Jobs; ++i) {
      queued_.fetch_add(1, std::memory_order_relaxed);
      if (runners_.may_call() && runners_.begin()) run();
    }
  }

  void thread(unsigned index) {
    if (index == 0) return submit();
    if (runners_.begin()) run();
  }

  void after() { RL_ASSERT(!some_left()); }
};

}  // namespace

int main() {
  models::weaken_if("no_light_fence", access::fence, "may_call");
  models::weaken_if("no_heavy_fence", access::fence, "end");
  const bool holds = models::check<runner_model<models::fenced_atomics, 1>>(4) && models::check<runner_model<models::kernel_atomics, 1>>(4) &&
                     models::check<runner_model<models::fenced_atomics, 2>>(3);
  return holds ? 0 : 1;
}
