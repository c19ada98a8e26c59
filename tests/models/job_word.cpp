// A job that one thread runs and others wait for, or find done.
// Checks W1 and W2: each waiter that attached is told once, and everybody sees the result whole.
//
// mutation: finish_unpublished
// mutation: finish_without_acquire
// mutation: finish_unchecked
// mutation: attach_unpublished
// mutation: attach_without_acquire
// mutation: done_relaxed
#include "models/relacy_atomics.hpp"

#include "jobs/job_word.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uintptr_t>;

struct waiter {
  waiter* next = nullptr;
  models::guarded<bool> written{false};  // before it attaches
  models::guarded<bool> there{true};
  models::latch told;
};

template <unsigned Waiters>
struct job_word_model : rl::test_suite<job_word_model<Waiters>, Waiters + 1> {
  word word_{0};
  models::guarded<int> result_{0};
  waiter waiters_[Waiters];
  unsigned told_[Waiters] = {}, attached_ = 0;  // the model's own

  jobs::job_word<waiter, word> job() { return jobs::job_word<waiter, word>(word_); }

  waiter* finish() {
    if (!models::mutated("finish_unchecked")) return job().finish();
    const std::uintptr_t seen = word_.load(std::memory_order_acquire);
    word_.store(1, std::memory_order_release);
    return reinterpret_cast<waiter*>(seen);
  }

  void run() {
    result_ = 7;
    for (waiter* at = finish(); at != nullptr;) {
      waiter& one = *at;
      RL_ASSERT(one.written && one.there);
      at = one.next;
      RL_ASSERT(++told_[&one - waiters_] == 1);
      one.told.open();
    }
  }

  void wait(waiter& one) {
    if (!job().is_done()) {
      one.written = true;
      if (job().attach(one)) {
        ++attached_;
        one.told.wait();
      }
    }
    RL_ASSERT(result_ == 7);
    one.there = false;
  }

  void thread(unsigned index) { index == 0 ? run() : wait(waiters_[index - 1]); }

  void after() {
    unsigned told = 0;
    for (const unsigned one : told_) told += one;
    RL_ASSERT(told == attached_);
  }
};

}  // namespace

int main() {
  models::weaken_if("finish_unpublished", access::exchange, "::finish(", std::memory_order_release);
  models::weaken_if("finish_without_acquire", access::exchange, "::finish(", std::memory_order_acquire);
  models::weaken_if("attach_unpublished", access::compare_exchange, "::attach(", std::memory_order_release);
  models::weaken_if("attach_without_acquire", access::load, "::attach(");
  models::weaken_if("done_relaxed", access::load, "::is_done(");
  const bool holds = models::check<job_word_model<1>>(6) && models::check<job_word_model<2>>(3);
  return holds ? 0 : 1;
}
