// A thread that queues jobs beside a runner that ends, with fences of their own and with the
// kernel's.
// Checks R1: no job is left in the queue when all threads have ended.
//
// In another model a thread queues long jobs, and each runner is kept busy by the first job that it
// finds. A job that no runner comes for is a deadlock (R2). There, runners see what is queued by
// their loads alone, without the fence of a steal.
//
// mutation: no_light_fence
// mutation: no_heavy_fence
// mutation: no_look_after_end
// mutation: no_fence_at_arrival
// mutation: no_second_look
// mutation: no_call_at_arrival
#include "models/relacy_atomics.hpp"

#include "jobs/pool/runner_count.hpp"

namespace {

using namespace troupe;
using models::access;

template <class Atomics, unsigned Jobs>
struct runner_model : rl::test_suite<runner_model<Atomics, Jobs>, 2> {
  jobs::runner_count<Atomics> runners_{1};
  models::atomic<unsigned> queued_{0};

  bool some_left() { return queued_.load(std::memory_order_relaxed) != 0; }

  // The caller has called the runner.
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

template <class Atomics, unsigned Jobs>
struct arrival_model : rl::test_suite<arrival_model<Atomics, Jobs>, Jobs + 1> {
  static constexpr unsigned calls_max = 4 * Jobs;
  jobs::runner_count<Atomics> runners_{Jobs};
  models::atomic<unsigned> queued_[Jobs]{};
  models::latch all_taken_, calls_[calls_max];
  unsigned called_ = 0, waiting_ = 0, taken_ = 0;  // the model's own; all threads see it at once
  bool ending_ = false;

  void call() {
    if (ending_ || !runners_.begin()) return;
    RL_ASSERT(called_ < calls_max);
    calls_[called_++].open();
  }
  bool take() {
    for (auto& one : queued_) {
      if (one.load(std::memory_order_relaxed) == 1 &&
          one.exchange(2, std::memory_order_relaxed) == 1)
        return true;
    }
    return false;
  }
  unsigned count_left() {
    unsigned left = 0;
    for (auto& one : queued_) left += one.load(std::memory_order_relaxed) == 1 ? 1 : 0;
    return left;
  }

  void submit() {
    for (auto& one : queued_) {
      one.store(1, std::memory_order_relaxed);
      if (runners_.wants_one()) call();
    }
  }
  void end() {
    ending_ = true;
    all_taken_.open();
    while (called_ < calls_max) calls_[called_++].open();
  }
  // Returns false when it has found no job.
  bool run() {
    runners_.arrive();
    if (!take()) return false;
    if (++taken_ == Jobs) end();
    if (!models::mutated("no_call_at_arrival")) {
      const unsigned left = count_left();
      for (unsigned coming = runners_.on_their_way(); coming < left; ++coming) call();
    }
    all_taken_.wait();
    return true;
  }

  void thread(unsigned index) {
    if (index == 0) return submit();
    for (;;) {
      calls_[waiting_++].wait();
      if (ending_ || run()) return;
      runners_.end();
      if (count_left() != 0) call();
    }
  }

  void after() { RL_ASSERT(taken_ == Jobs); }
};

}  // namespace

int main() {
  models::weaken_if("no_light_fence", access::fence, "may_call");
  models::weaken_if("no_heavy_fence", access::fence, "end");
  models::weaken_if("no_fence_at_arrival", access::fence, "arrive");
  models::weaken_if("no_second_look", access::fence, "wants_one");
  const bool holds = models::check<runner_model<models::fenced_atomics, 1>>(4) &&
                     models::check<runner_model<models::kernel_atomics, 1>>(4) &&
                     models::check<runner_model<models::fenced_atomics, 2>>(3) &&
                     models::check<arrival_model<models::fenced_atomics, 2>>(3) &&
                     models::check<arrival_model<models::kernel_atomics, 2>>(3) &&
                     models::check<arrival_model<models::kernel_atomics, 3>>(1);
  return holds ? 0 : 1;
}
