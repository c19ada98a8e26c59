// One thread runs a job; others wait for it, or find it done.
// Checks W1 and W2: each waiter that attached is told once, every thread sees the result whole, and
// a waiter that detached is not told.
//
// mutation: finish_unpublished
// mutation: finish_without_acquire
// mutation: finish_unchecked
// mutation: attach_unpublished
// mutation: attach_without_acquire
// mutation: done_relaxed
// mutation: detach_without_acquire
// mutation: detach_the_newest_only
// mutation: detach_beside_the_end
#include "models/relacy_atomics.hpp"

#include "jobs/waits/job_word.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uintptr_t>;

struct waiter {
  models::guarded<waiter*> next{nullptr};
  models::guarded<bool> written{false};  // set before the waiter attaches
  models::guarded<bool> there{true};
  models::latch told;
};

template <unsigned Waiters>
struct job_word_model : rl::test_suite<job_word_model<Waiters>, Waiters + 1> {
  word word_{0};
  models::guarded<int> result_{0};
  waiter waiters_[Waiters];
  unsigned told_[Waiters] = {}, attached_ = 0;  // the model's own, not checked for races

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

// The end of the job waits for thread 1, which waits for the job and then leaves. Thread 2 waits
// for the job, too, in front of thread 1 in the list or behind it.
struct detach_model : rl::test_suite<detach_model, 3> {
  word word_{0};
  models::guarded<int> result_{0};
  waiter leaves_, stays_;
  models::latch left_;
  bool told_ = false, attached_ = false;  // the model's own, not checked for races

  jobs::job_word<waiter, word> job() { return jobs::job_word<waiter, word>(word_); }

  void run() {
    if (!models::mutated("detach_beside_the_end")) left_.wait();
    result_ = 7;
    for (waiter* at = job().finish(); at != nullptr;) {
      waiter& one = *at;
      RL_ASSERT(one.written && one.there);
      at = one.next;
      RL_ASSERT(&one == &stays_ && !told_);
      told_ = true;
      one.told.open();
    }
  }
  void leave() {
    leaves_.written = true;
    if (job().attach(leaves_)) {
      if (!models::mutated("detach_the_newest_only")) {
        job().detach(leaves_);
      } else {
        auto seen = reinterpret_cast<std::uintptr_t>(&leaves_);
        word_.compare_exchange_strong(
            seen, reinterpret_cast<std::uintptr_t>(static_cast<waiter*>(leaves_.next)),
            std::memory_order_acq_rel);
      }
    }
    leaves_.there = false;
    left_.open();
  }
  void wait() {
    stays_.written = true;
    if (job().attach(stays_)) {
      attached_ = true;
      stays_.told.wait();
    }
    RL_ASSERT(result_ == 7);
    stays_.there = false;
  }

  void thread(unsigned index) { index == 0 ? run() : index == 1 ? leave() : wait(); }
  void after() { RL_ASSERT(told_ == attached_); }
};

}  // namespace

int main() {
  models::weaken_if("finish_unpublished", access::exchange, "::finish(", std::memory_order_release);
  models::weaken_if("finish_without_acquire", access::exchange, "::finish(",
                    std::memory_order_acquire);
  models::weaken_if("attach_unpublished", access::compare_exchange, "::attach(",
                    std::memory_order_release);
  models::weaken_if("attach_without_acquire", access::load, "::attach(");
  models::weaken_if("detach_without_acquire", access::compare_exchange, "::detach(",
                    std::memory_order_acquire);
  models::weaken_if("done_relaxed", access::load, "::is_done(");
  const bool holds = models::check<job_word_model<1>>(6) && models::check<job_word_model<2>>(3) &&
                     models::check<detach_model>(3);
  return holds ? 0 : 1;
}
