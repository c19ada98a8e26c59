// A result that comes once, and the threads that race to end the wait for it: the resolver, a
// timer, a stop token, and the waiter itself.
//
// In the first model a thread waits several times, each time with its own observer. It frees the
// observer as soon as attach() refused it, detach() gave it back, or it was told. In the second
// model a coroutine waits once: when it has attached, the timer and the stop token may detach it,
// and at its actor's end the waiter itself may. The thread that ends the wait says how, and the
// observer is freed when the timer and the token are done with it. In the third model the taker
// leaves at any time, with or without having waited.
// Checks O1 to O4: one thread ends the wait, no thread touches an observer that was freed, the
// result is whole where it is seen, and it is freed once, when no thread touches it any more.
//
// mutation: resolve_unpublished
// mutation: resolve_without_acquire
// mutation: resolve_unchecked
// mutation: attach_unpublished
// mutation: attach_without_acquire
// mutation: resolved_relaxed
// mutation: detach_without_acquire
// mutation: detach_unchecked
// mutation: leave_unpublished
// mutation: leave_without_acquire
// mutation: leave_unchecked
#include "models/relacy_atomics.hpp"

#include "task/one_shot.hpp"

namespace {

using namespace troupe;
using models::access;
using word = models::atomic<std::uintptr_t>;

struct observer {
  models::guarded<bool> written{false};  // set before the observer attaches
  models::guarded<bool> there{true};
  models::guarded<bool> by_result{false};  // how the wait ended
  models::latch over;
};

using shipped = tasks::one_shot<observer, word>;

// The shipped class, with the mutations that do not concern memory orders.
struct shot : shipped {
  explicit shot(word& in) : shipped(in), word_(in) {}
  resolved_for resolve() {
    if (!models::mutated("resolve_unchecked")) return shipped::resolve();
    const std::uintptr_t seen = word_.load(std::memory_order_acquire);
    word_.store(1, std::memory_order_release);
    if (seen == untaken) return {nullptr, true};
    return {reinterpret_cast<observer*>(seen), false};
  }
  bool leave() {
    if (!models::mutated("leave_unchecked")) return shipped::leave();
    if (resolved()) return true;
    word_.store(untaken, std::memory_order_release);
    return false;
  }
  bool detach(observer& waiting) {
    if (!models::mutated("detach_unchecked")) return shipped::detach(waiting);
    if (word_.load(std::memory_order_acquire) != reinterpret_cast<std::uintptr_t>(&waiting))
      return false;
    word_.store(0, std::memory_order_relaxed);
    return true;
  }
  word& word_;
};

struct resolving {
  word word_{0};
  models::guarded<int> result_{0};
  unsigned told_ = 0, freed_ = 0;  // the model's own, not checked for races

  void free() {
    ++freed_;
    result_ = -1;
  }
  void leave() {
    if (shot(word_).leave()) free();
  }
  void end(observer& one, bool by_result) {
    RL_ASSERT(++told_ == 1);
    RL_ASSERT(one.there && one.written);
    one.by_result = by_result;
    one.over.open();
  }
  // Returns whether this was the last touch of the result.
  bool resolve() {
    result_ = 7;
    const auto [waiting, last] = shot(word_).resolve();
    if (waiting != nullptr) {
      end(*waiting, true);
    } else if (last) {
      free();
    }
    return last;
  }
  void see_result() { RL_ASSERT(result_ == 7); }
};

// As shared_state::wait, first with a limit of time and then without.
template <unsigned Waits>
struct thread_model : rl::test_suite<thread_model<Waits>, 2>, resolving {
  observer observers_[Waits];

  // Returns whether the result has come.
  bool wait(observer& one, bool limited) {
    one.written = true;
    const bool attached = shot(word_).attach(one);
    if (attached && limited && shot(word_).detach(one)) {
      one.there = false;
      return false;
    }
    if (!attached || limited) see_result();
    if (attached) one.over.wait();
    one.there = false;
    return true;
  }

  void thread(unsigned index) {
    if (index == 0) return static_cast<void>(resolve());
    for (unsigned i = 0; i < Waits && !shot(word_).resolved(); ++i) {
      if (wait(observers_[i], i + 1 < Waits)) break;
    }
    RL_ASSERT(shot(word_).resolved());
    see_result();
    leave();
  }

  void after() { RL_ASSERT(freed_ == 1); }
};

struct leaver_model : rl::test_suite<leaver_model, 2>, resolving {
  models::guarded<int> taken_{0};  // what the taker wrote to the result's memory before it left

  void thread(unsigned index) {
    if (index == 0) {
      if (resolve()) RL_ASSERT(taken_ == 1);
      return;
    }
    taken_ = 1;
    leave();
  }

  void after() { RL_ASSERT(freed_ == 1); }
};

template <unsigned Detachers, bool Ends>
struct coroutine_model : rl::test_suite<coroutine_model<Detachers, Ends>, 2 + Detachers>,
                         resolving {
  observer observer_;
  bool attached_ = false;  // written before the latch opens
  models::latch armed_[Detachers], done_[Detachers];

  void await() {
    observer_.written = true;
    attached_ = shot(word_).attach(observer_);
    if (!attached_) observer_.there = false;
    for (auto& one : armed_) one.open();
    if (!attached_) {
      see_result();
      return leave();
    }
    const bool cancelled = Ends && shot(word_).detach(observer_);
    if (cancelled) {
      RL_ASSERT(++told_ == 1);
    } else {
      observer_.over.wait();
    }
    for (auto& one : done_) one.wait();
    if (!cancelled && observer_.by_result) see_result();
    observer_.there = false;
    leave();
  }

  void thread(unsigned index) {
    if (index == 0) return static_cast<void>(resolve());
    if (index == 1) return await();
    index -= 2;
    armed_[index].wait();
    if (attached_ && shot(word_).detach(observer_)) end(observer_, false);
    done_[index].open();
  }

  void after() {
    RL_ASSERT(told_ == (attached_ ? 1 : 0));
    RL_ASSERT(freed_ == 1);
  }
};

}  // namespace

int main() {
  models::weaken_if("resolve_unpublished", access::exchange, "::resolve(",
                    std::memory_order_release);
  models::weaken_if("resolve_without_acquire", access::exchange, "::resolve(",
                    std::memory_order_acquire);
  models::weaken_if("attach_unpublished", access::compare_exchange, "::attach(",
                    std::memory_order_release);
  models::weaken_if("attach_without_acquire", access::compare_exchange, "::attach(",
                    std::memory_order_acquire);
  models::weaken_if("resolved_relaxed", access::load, "::resolved(");
  models::weaken_if("detach_without_acquire", access::compare_exchange, "::detach(",
                    std::memory_order_acquire);
  models::weaken_if("leave_unpublished", access::compare_exchange, "::leave(",
                    std::memory_order_release);
  models::weaken_if("leave_without_acquire", access::compare_exchange, "::leave(",
                    std::memory_order_acquire);
  const bool holds =
      models::check<leaver_model>(6) && models::check<thread_model<1>>(6) &&
      models::check<thread_model<3>>(6) && models::check<coroutine_model<1, false>>(4) &&
      models::check<coroutine_model<1, true>>(4) && models::check<coroutine_model<2, false>>(3) &&
      models::check<coroutine_model<2, true>>(3);
  return holds ? 0 : 1;
}
