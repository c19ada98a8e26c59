// mutex and shared_mutex: locks for which a coroutine waits without holding its thread.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/sync/permits.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe {

class condition;

namespace sync {

struct debugger_view;

// Remembers which coroutine holds a lock, for reports and for the search for cycles. (Not which
// async call: a task that sleeps gets another call.) Unknown (null) between two holders, and while
// another party than the coroutine that took the lock holds it.
class holder_of_lock {
 public:
  void begin(const tasks::coroutine& by) noexcept {
    // order: relaxed (both)  for messages
    method_.store(by.call->call.act, std::memory_order_relaxed);
    at_.store(by.awaits_at, std::memory_order_relaxed);
    // order: release  a search that sees the coroutine sees its method; pairs with get/acquire
    by_.store(&by, std::memory_order_release);
  }
  // order: relaxed  written by the holder, which releases the lock afterwards
  void end() noexcept { by_.store(nullptr, std::memory_order_relaxed); }
  tasks::lock_holder get() const noexcept {
    // order: acquire  pairs with begin/release
    const tasks::coroutine* const by = by_.load(std::memory_order_acquire);
    if (by == nullptr) return {};
    // order: relaxed (both)  for messages
    return {by, method_.load(std::memory_order_relaxed), at_.load(std::memory_order_relaxed)};
  }

 private:
  friend debugger_view;  // src/runtime/debugger_table.cpp
  std::atomic<const tasks::coroutine*> by_{nullptr};
  std::atomic<sched::message::handler> method_{nullptr};
  std::atomic<tasks::source_line> at_{nullptr};
};

// A held lock. The destructor of this object releases it, on any thread. `Lock` has a function
// give_back(bool shared).
template <class Lock, bool shared>
class [[nodiscard]] held {
 public:
  held() = default;
  explicit held(Lock& lock) noexcept : lock_(&lock) {}
  // From the move on, no report names the holder.
  held(held&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {
    if (lock_ != nullptr) lock_->forget_holder();
  }
  held& operator=(held&& other) noexcept {
    if (this != &other) {
      unlock();
      lock_ = std::exchange(other.lock_, nullptr);
      if (lock_ != nullptr) lock_->forget_holder();
    }
    return *this;
  }
  ~held() { unlock(); }

  // Releases the lock early.
  void unlock() noexcept {
    if (Lock* const lock = std::exchange(lock_, nullptr)) lock->give_back(shared);
  }
  explicit operator bool() const noexcept { return lock_ != nullptr; }

 private:
  friend troupe::condition;
  Lock* lock_ = nullptr;
};

// The wait for a lock.
template <class Lock, bool shared>
struct locking : permit_waiter {
  static constexpr const char* name = shared ? "a shared lock" : "a lock";
  explicit locking(Lock& wanted) noexcept : lock(&wanted) { wants = shared ? 1 : Lock::all; }
  locking(locking&& other) noexcept : lock(other.lock), by(other.by) { wants = other.wants; }
  void begin_in(tasks::coroutine& waits) noexcept { by = &waits; }
  bool try_now() noexcept { return lock->permits_.try_take(wants); }
  bool start() noexcept { return lock->permits_.take_or_wait(*this); }
  bool withdraw() noexcept { return lock->permits_.withdraw(*this); }
  bool find_holder(tasks::lock_holder& found) noexcept {
    return lock->permits_.while_waiting(*this, [&] { found = lock->holder_.get(); });
  }
  bool put_back() noexcept {
    lock->permits_.give(wants);
    return true;
  }
  held<Lock, shared> finish() noexcept {
    if constexpr (!shared) {
      if (by != nullptr) lock->holder_.begin(*by);
    }
    return held<Lock, shared>(*lock);
  }
  Lock* lock;
  const tasks::coroutine* by = nullptr;  // null for a plain thread
};

}  // namespace sync

// A lock that one party holds at a time, for state that several actors or tasks share, and that no
// other party may change while the holder awaits something. State of one actor needs no lock.
//
// Thread: any. Waiting coroutines and threads get the lock in the order in which they came. A guard
// may be dropped on a different thread. Cost: about 8 ns when no party holds it; 56 bytes. Errors:
// a coroutine that waits throws cancelled when its call is cancelled, and deadlock when each holder
// in a cycle waits for the lock of the next; guards that were moved are not found in cycles. A
// second lock() by the same coroutine is such a cycle. Lifetime: the mutex must live as long as
// guards and waits.
//
// Example:
//     struct Log {
//       troupe::mutex busy;
//       int lines = 0;
//     };
//     troupe::task<> write(std::shared_ptr<Log> log) {
//       auto held = co_await log->busy.lock();
//       const int before = log->lines;
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));
//       log->lines = before + 1;  // no other write came in between
//     }
//     int main() {
//       troupe::runtime rt;
//       auto log = std::make_shared<Log>();
//       rt.spawn(write(log));
//       rt.spawn(write(log));
//       rt.run();
//       std::cout << log->lines << '\n';
//     }
class mutex {
 public:
  using guard = sync::held<mutex, false>;

  mutex() = default;

  // Waits for the lock: co_await it, optionally with timeout() or stop(), or block in get() on a
  // plain thread.
  sync::awaiting<sync::locking<mutex, false>> lock() noexcept {
    return sync::awaiting<sync::locking<mutex, false>>(std::in_place, *this);
  }
  // Does not wait. Returns nothing if the lock is held or waited for.
  std::optional<guard> try_lock() noexcept {
    std::optional<guard> got;
    if (permits_.try_take(all)) got.emplace(*this);
    return got;
  }
  // Only a hint.
  bool is_locked() const noexcept { return permits_.free() == 0; }

 private:
  friend sync::debugger_view;
  friend sync::held<mutex, false>;
  friend sync::locking<mutex, false>;
  friend condition;
  static constexpr std::uint64_t all = 1;
  void forget_holder() noexcept { holder_.end(); }
  void give_back(bool) noexcept {
    holder_.end();
    permits_.give(all);
  }

  sync::permits permits_{all};
  sync::holder_of_lock holder_;
};

// A lock that one writer or many readers hold. Requests are served in order: a reader that comes
// behind a waiting writer waits, so that readers never starve a writer.
//
// Thread, errors, lifetime: as for mutex. Cost: about 10 ns when no party has to wait; 56 bytes.
// Reports and the search for deadlocks see the holder for writing, not the holders for reading.
//
// Example:
//     troupe::task<int> total(std::shared_ptr<troupe::shared_mutex> lock,
//                             std::shared_ptr<std::vector<int>> numbers) {
//       auto held = co_await lock->lock_shared();
//       co_return std::accumulate(numbers->begin(), numbers->end(), 0);
//     }
//     int main() {
//       troupe::runtime rt;
//       auto numbers = std::make_shared<std::vector<int>>(3, 14);
//       auto sum = rt.spawn(total(std::make_shared<troupe::shared_mutex>(), numbers));
//       rt.run();
//       std::cout << sum.get() << '\n';
//     }
class shared_mutex {
 public:
  using guard = sync::held<shared_mutex, false>;
  using shared_guard = sync::held<shared_mutex, true>;

  shared_mutex() = default;

  // For writing: waits until no other party holds it.
  sync::awaiting<sync::locking<shared_mutex, false>> lock() noexcept {
    return sync::awaiting<sync::locking<shared_mutex, false>>(std::in_place, *this);
  }
  // For reading: waits until no writer holds it, nor waits for it.
  sync::awaiting<sync::locking<shared_mutex, true>> lock_shared() noexcept {
    return sync::awaiting<sync::locking<shared_mutex, true>>(std::in_place, *this);
  }
  std::optional<guard> try_lock() noexcept {
    std::optional<guard> got;
    if (permits_.try_take(all)) got.emplace(*this);
    return got;
  }
  std::optional<shared_guard> try_lock_shared() noexcept {
    std::optional<shared_guard> got;
    if (permits_.try_take(1)) got.emplace(*this);
    return got;
  }

 private:
  friend sync::debugger_view;
  friend sync::held<shared_mutex, false>;
  friend sync::held<shared_mutex, true>;
  friend sync::locking<shared_mutex, false>;
  friend sync::locking<shared_mutex, true>;
  static constexpr std::uint64_t all = sync::permits::most;  // a reader holds one of them
  void forget_holder() noexcept { holder_.end(); }
  void give_back(bool shared) noexcept {
    if (!shared) holder_.end();
    permits_.give(shared ? 1 : all);
  }

  sync::permits permits_{all};
  sync::holder_of_lock holder_;
};

}  // namespace troupe
