// waiting_operations: how many operations of a poller wait that keep the program alive.
//
// A worker that is counted as busy keeps its changes of that number in a share of its own, since
// it keeps the program alive itself meanwhile. It adds them to the common number before it is
// counted as idle: a wait that a busy worker begins and ends changes no word that others write.
// Protocol: docs/protocols/outstanding_work.md. Model: tests/models/sched/waiting_operations.cpp.
// Invariants
//   O1  the common number and all shares add up to the number of operations that wait.
//   O2  the share of a worker that is not counted as busy is 0.
//   O3  while the common number is positive the runtime is held, or the thread that made it
//       positive is counted itself and about to hold the runtime.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/atomics.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::sched {

template <class Atomics = base::std_atomics>
class basic_waiting_operations {
 public:
  class share {
   public:
    // Owner: whether there is something to add.
    bool is_settled() const noexcept { return change() == 0; }

    // Owner: one more operation had to wait, of those that keep the program alive or of others.
    void count_begun() noexcept {
      // order: relaxed (both)  as below
      begun_.store(begun_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // Owner: an object that a component keeps for this worker, and the component's part that it
    // belongs to. Here it costs no thread-local storage.
    const void* kept_for = nullptr;
    void* kept = nullptr;

   private:
    friend class basic_waiting_operations;
    // order: relaxed (all)  written by one thread; others read it as a statistic
    std::int64_t change() const noexcept { return change_.load(std::memory_order_relaxed); }
    void set(std::int64_t to) noexcept { change_.store(to, std::memory_order_relaxed); }
    // order: relaxed (all)  as above; the owner is written before the first operation
    void belong_to(basic_waiting_operations* all) noexcept {
      owner_.store(all, std::memory_order_relaxed);
    }
    bool is_of(const basic_waiting_operations& all) const noexcept {
      return owner_.load(std::memory_order_relaxed) == &all;
    }
    typename Atomics::template atomic<std::int64_t> change_{0};
    typename Atomics::template atomic<std::uint64_t> begun_{0};
    typename Atomics::template atomic<basic_waiting_operations*> owner_{nullptr};
  };

  // The caller's next step.
  enum class next : std::uint8_t { nothing, hold, release };

  // So many operations more. `own`: the caller's share if it is a worker that is counted as busy;
  // else null, and the caller is counted in another way, or has a hold.
  [[nodiscard]] TROUPE_INLINE next add(share* own, std::int64_t n) noexcept {
    if (!has(own)) [[unlikely]]
      return add_to_all(n);
    add_own(*own, n);
    return next::nothing;
  }
  // The same for a share that is known to be this worker's, and of this pool.
  static void add_own(share& own, std::int64_t n) noexcept { own.set(own.change() + n); }

  // The worker is about to be counted as idle.
  [[nodiscard]] next settle(share& own) noexcept {
    const std::int64_t n = own.change();
    own.set(0);
    return add_to_all(n);
  }

  bool has(const share* own) const noexcept { return own != nullptr && own->is_of(*this); }

  // Before the first operation. The shares outlive the pool of their workers.
  void adopt(share& own) {
    shares_.push_back(&own);
    own.belong_to(this);
  }
  // When its worker works for this pool no longer.
  static void let_go(share& own) noexcept {
    own.belong_to(nullptr);
    own.set(0);
    own.begun_.store(0, std::memory_order_relaxed);  // order: relaxed  a statistic
    own.kept_for = nullptr;
  }

  // Statistics: the operations that wait now, and those that the shares have counted as begun.
  std::uint64_t begun() const noexcept {
    std::uint64_t sum = 0;
    for (const share* own : shares_) {
      // order: relaxed  a statistic
      sum += own->is_of(*this) ? own->begun_.load(std::memory_order_relaxed) : 0;
    }
    return sum;
  }
  std::int64_t count() const noexcept {
    std::int64_t sum = all_.load(std::memory_order_relaxed);  // order: relaxed  a statistic
    for (const share* own : shares_) sum += own->is_of(*this) ? own->change() : 0;
    return sum;
  }

 private:
  TROUPE_NOINLINE next add_to_all(std::int64_t n) noexcept {
    // order: acq_rel  the thread that brings the number to 0, and then perhaps the count of
    // outstanding work, has seen the work of those before it (O3); pairs with itself
    const std::int64_t before = all_.fetch_add(n, std::memory_order_acq_rel);
    const bool held = before > 0, holds = before + n > 0;
    if (held == holds) return next::nothing;
    return holds ? next::hold : next::release;
  }

  alignas(base::line_bytes) typename Atomics::template atomic<std::int64_t> all_{0};
  std::vector<share*> shares_;
};

using waiting_operations = basic_waiting_operations<>;

// The share of the calling thread, if that is a worker which is counted as busy; else null. A word
// of its own for each thread: operations read it without a look at the worker.
class busy_share {
 public:
  static waiting_operations::share* current() noexcept { return current_; }
  // The worker's own thread: the worker is counted as busy from now on, or, with null, no longer.
  static void set_current(waiting_operations::share* share) noexcept { current_ = share; }

 private:
  inline static constinit thread_local waiting_operations::share* current_
      [[gnu::tls_model("initial-exec")]] = nullptr;
};

}  // namespace troupe::sched
