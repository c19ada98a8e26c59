// The parker: two notifiers, each of which does something before it notifies, and an owner that
// waits until it has seen both, or first for a limited time. Waits may also return for no reason.
// Checks P1 (a lost notify is a deadlock), P2 (of two notifies one wait returns), P3, and P4: an
// owner that sleeps elsewhere is woken there.
//
// mutation: notify_relaxed
// mutation: wait_relaxed
// mutation: prepare_relaxed
// mutation: wait_for_relaxed
// mutation: end_wait_elsewhere_relaxed
// mutation: silent_notify
// mutation: deaf_prepare
// mutation: kept_notify
#include "models/relacy_atomics.hpp"

#include "base/parker.hpp"

namespace {

using namespace troupe;
using models::access;

constexpr unsigned notifiers = 2;

struct futex : models::futex {
  static void wait(word& at, std::uint32_t expected, const std::chrono::nanoseconds* limit) {
    // With this mutation the thread sleeps whatever value the word has by now.
    if (models::mutated("deaf_prepare")) expected = at.load(std::memory_order_relaxed);
    models::futex::wait(at, expected, limit);
  }
};

template <bool timed>
struct parker_model : rl::test_suite<parker_model<timed>, 1 + notifiers> {
  base::basic_parker<models::fenced_atomics, futex> parker;
  models::guarded<unsigned> work[notifiers];
  models::atomic<unsigned> done[notifiers];
  bool told[notifiers] = {};  // the model's own; all threads see it at once

  void before() { futex::early_left = 2; }

  void notify(unsigned self) {
    work[self] = 1;
    done[self].store(1, std::memory_order_relaxed);
    parker.notify();
    told[self] = true;
  }

  bool all_done() {
    bool all = true;
    for (auto& one : done) all = one.load(std::memory_order_relaxed) != 0 && all;
    return all;
  }

  void thread(unsigned index) {
    if (index != 0) return notify(index - 1);
    while (!all_done()) {
      if (timed) {
        parker.wait_for(std::chrono::nanoseconds(1));
      } else {
        parker.wait();
      }
      for (unsigned i = 0; i < notifiers; ++i) RL_ASSERT(!told[i] || work[i] == 1);
    }
  }
};

// One notify, and an owner that waits for nothing else.
template <bool timed>
struct one_notify_model : rl::test_suite<one_notify_model<timed>, 2> {
  base::basic_parker<models::fenced_atomics, futex> parker;
  models::guarded<unsigned> work{0};

  void before() { futex::early_left = 2; }

  void thread(unsigned index) {
    if (index != 0) {
      work = 1;
      parker.notify();
      return;
    }
    if (timed) {
      while (!parker.wait_for(std::chrono::nanoseconds(1))) continue;
    } else {
      parker.wait();
    }
    RL_ASSERT(work == 1);
  }
};

// A thread that notifies twice before the owner waits for the first time.
struct two_notifies_model : rl::test_suite<two_notifies_model, 2> {
  base::basic_parker<models::fenced_atomics, futex> parker;
  models::latch both;

  void thread(unsigned index) {
    if (index != 0) {
      parker.notify();
      parker.notify();
      both.open();
      return;
    }
    both.wait();
    const bool first = parker.begin_wait_elsewhere();
    RL_ASSERT(!first);
    // With this mutation a notify is left for the next wait.
    if (models::mutated("kept_notify")) parker.notify();
    const bool second = parker.begin_wait_elsewhere();
    RL_ASSERT(second);
  }
};

// An owner that sleeps elsewhere, where a bell wakes it.
struct elsewhere_model : rl::test_suite<elsewhere_model, 2> {
  base::basic_parker<models::fenced_atomics, futex> parker;
  models::guarded<unsigned> work{0};
  models::atomic<std::uint32_t> bell{0};

  void thread(unsigned index) {
    if (index != 0) {
      work = 1;
      if (!parker.notify() || models::mutated("silent_notify")) return;
      bell.store(1, std::memory_order_relaxed);
      bell.wake_one();
      return;
    }
    if (parker.begin_wait_elsewhere()) {
      if (rl::rand(2) == 0) bell.wait(0);  // otherwise the sleep ends for no reason
      if (!parker.end_wait_elsewhere()) return;
    }
    RL_ASSERT(work == 1);
  }
};

}  // namespace

int main() {
  models::weaken_if("notify_relaxed", access::exchange, "notify");
  models::weaken_if("wait_relaxed", access::compare_exchange, "::wait()");
  models::weaken_if("prepare_relaxed", access::exchange, "prepare");
  models::weaken_if("wait_for_relaxed", access::exchange, "wait_for");
  models::weaken_if("end_wait_elsewhere_relaxed", access::exchange, "::end_wait_elsewhere");
  futex::spurious = true;
  const bool holds = models::check<elsewhere_model>(3) && models::check<two_notifies_model>(3) &&
                     models::check<one_notify_model<false>>(3) &&
                     models::check<one_notify_model<true>>(3) &&
                     models::check<parker_model<false>>(3) && models::check<parker_model<true>>(3);
  return holds ? 0 : 1;
}
