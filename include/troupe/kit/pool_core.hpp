// pool_core: the part of a pool of resources that does not depend on their type. For the library's
// own use.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/sync/permits.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/event.hpp"

namespace troupe {

// A pool was closed: it gives no resources any more.
//
// Example:
//     troupe::task<> use(troupe::pool<int> numbers) {
//       try {
//         std::cout << *co_await numbers.borrow() << '\n';
//       } catch (const troupe::pool_closed&) {
//         std::cout << "too late\n";
//       }
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::pool<int> numbers({}, [] { return 1; });
//       numbers.close().get();
//       rt.spawn(use(numbers));
//       rt.run();
//     }
class pool_closed : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// Options of a pool. A value that makes no sense is an option_error.
struct pool_options {
  // The number of resources that the pool keeps even if no caller needs them. They are made when
  // the pool is first used, and replaced later. Default 0; at most `max`.
  std::size_t min = 0;
  // The maximum number of resources, including those that are being made. Default 10; at least 1.
  std::size_t max = 10;
  // A resource that was idle for this time is destroyed if the pool has more than `min` resources.
  // Default 10 min.
  time_span idle_max = std::chrono::minutes(10);
  // The maximum age of a resource: an older one is destroyed as soon as it is not in use. Default:
  // no limit.
  time_span life_max = time_span::max();
  // A resource that was idle for at least this time is checked before it is lent, and when the pool
  // inspects its idle resources. Default 500 ms; 0: always.
  time_span check_after = std::chrono::milliseconds(500);
  // How often the pool inspects its idle resources: it destroys old ones, checks the others, and
  // makes new ones up to `min`. Default 30 s; longer than 0. These inspections do not keep the
  // program alive.
  time_span look_every = std::chrono::seconds(30);
};

// The upper bounds of the buckets in which a pool counts the waits of its callers, by the time
// until they got a resource or gave up. A further bucket counts longer waits.
inline constexpr std::array<double, 14> pool_wait_seconds{
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

// A pool's gauges, and its counters since the beginning.
struct pool_counts {
  std::size_t idle = 0;     // resources that wait to be used
  std::size_t in_use = 0;   // resources that are lent, being checked or being made
  std::size_t waiting = 0;  // parties that wait for a resource
  std::uint64_t lent = 0;
  std::uint64_t made = 0;
  std::uint64_t failed = 0;     // attempts to make one that threw
  std::uint64_t destroyed = 0;  // for whatever reason
  // How many callers of borrow() waited that long, by pool_wait_seconds, each in one bucket;
  // callers that still wait are not counted.
  std::array<std::uint64_t, pool_wait_seconds.size() + 1> waits{};
  time_span waited{};  // all waits together
};

namespace kit {

// One resource; the derived class has the resource itself. While it is idle, the core's mutex
// guards it; otherwise it belongs to its user.
struct pool_entry {
  explicit pool_entry(void (*destroys)(pool_entry&) noexcept) noexcept : destroy(destroys) {}
  void (*const destroy)(pool_entry&) noexcept;
  pool_entry* older = nullptr;
  pool_entry* newer = nullptr;
  std::int64_t made_ns = 0, idle_ns = 0;
  std::uint64_t looked_at = 0;  // the number of the last look at all idle resources
};

class pool_core {
 public:
  explicit pool_core(const pool_options& given);
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;
  ~pool_core();

  // The wait for the right to have one resource.
  struct waiting : sync::permit_waiter {
    static constexpr const char* name = "a resource of a pool";
    explicit waiting(pool_core& from) noexcept : pool(&from) {}
    waiting(waiting&& other) noexcept : pool(other.pool) {}
    bool start() noexcept {
      // order: relaxed  a statistic
      pool->waiting_.fetch_add(1, std::memory_order_relaxed);
      counted = true;
      const bool waits = pool->permits_.take_or_wait(*this);
      if (!waits) leave();
      return waits;
    }
    bool withdraw() noexcept {
      if (!pool->permits_.withdraw(*this)) return false;
      leave();
      return true;
    }
    bool put_back() noexcept {
      pool->permits_.give(1);
      leave();
      return true;
    }
    void finish() noexcept { leave(); }
    void leave() noexcept {
      // order: relaxed  a statistic
      if (std::exchange(counted, false)) pool->waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    pool_core* pool;
    bool counted = false;
  };
  sync::awaiting<waiting> wait() noexcept { return sync::awaiting<waiting>(std::in_place, *this); }

  // Takes the right to have one resource, if it need not wait for it.
  bool take_at_once() noexcept {
    if (!permits_.try_take(1)) return false;
    note_wait(std::chrono::nanoseconds(0));
    return true;
  }
  // Counts the time of a wait, however it ends. Thread: the caller's turn.
  class counted_wait {
   public:
    explicit counted_wait(pool_core& pool) noexcept : pool_(pool), began_ns_(pool.read_clock()) {}
    counted_wait(const counted_wait&) = delete;
    counted_wait& operator=(const counted_wait&) = delete;
    ~counted_wait() { pool_.note_wait(std::chrono::nanoseconds(pool_.read_clock() - began_ns_)); }

   private:
    pool_core& pool_;
    const std::int64_t began_ns_;
  };

  // The right to have one resource, and the resource, or its making, if there is one by now.
  // Without the resource being put back, the destructor destroys it. Thread: one at a time.
  class slot {
   public:
    slot() noexcept = default;
    // Adopts a permit.
    explicit slot(pool_core& pool) noexcept : pool_(&pool) {}
    slot(slot&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          entry_(std::exchange(other.entry_, nullptr)),
          makes_(std::exchange(other.makes_, false)) {}
    slot& operator=(slot&& other) noexcept {
      slot(std::move(other)).swap(*this);
      return *this;
    }
    ~slot() { end(); }

    explicit operator bool() const noexcept { return pool_ != nullptr; }
    pool_entry* entry() const noexcept { return entry_; }
    // Takes an idle resource in place of the one that it has. Returns false if there is none: then
    // the caller makes one. Throws pool_closed.
    bool take();
    bool wants_check() const noexcept;
    // The resource was made.
    void fill(pool_entry& filled) noexcept;
    // Counts that the caller uses the resource now.
    void lend() noexcept;
    void put_back() noexcept;
    void end() noexcept;
    void swap(slot& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(entry_, other.entry_);
      std::swap(makes_, other.makes_);
    }

   private:
    friend pool_core;
    pool_core* pool_ = nullptr;
    pool_entry* entry_ = nullptr;
    bool makes_ = false;
  };

  // A slot with an idle resource that needs no check; empty if that is not to be had at once.
  slot try_take();

  // One look at all idle resources: destroys those that are too old, and gives the others one by
  // one; an empty slot ends the look. A resource that is put back keeps the time for which it is
  // idle.
  std::uint64_t begin_look() noexcept;
  slot next_of_look(std::uint64_t look) noexcept;
  void end_look(slot&& checked, bool is_good) noexcept;
  // A slot to make a resource in, if there are too few; else empty.
  slot take_missing() noexcept;

  // Returns true for the first caller until release_looks() is called.
  bool claim_looks() noexcept { return !looks_.exchange(true); }
  void release_looks() noexcept { looks_.store(false); }

  bool is_closed() const noexcept;
  // No resources from now on; all waiting callers are notified.
  void close() noexcept;
  const event& drained() const noexcept { return drained_; }

  pool_counts counts() const noexcept;
  const pool_options options;

 private:
  friend waiting;
  struct doomed;
  class clock_state;
  std::int64_t now_ns() const noexcept;  // under the mutex
  std::int64_t read_clock() const noexcept;
  void note_wait(std::chrono::nanoseconds waited) noexcept;
  bool is_old(const pool_entry& entry, std::int64_t now) const noexcept;
  pool_entry* pop_newest(doomed& to_destroy) noexcept;
  void insert(pool_entry& entry) noexcept;
  void remove(pool_entry& entry) noexcept;
  void drop_old(std::int64_t now, doomed& to_destroy) noexcept;
  void note_gone(std::size_t count) noexcept;

  sync::permits permits_;
  std::atomic<std::size_t> waiting_{0};
  std::array<std::atomic<std::uint64_t>, pool_wait_seconds.size() + 1> waits_{};
  std::atomic<std::int64_t> waited_ns_{0};
  std::atomic<bool> looks_{false};
  mutable base::small_mutex mutex_;
  const std::unique_ptr<clock_state> clock_;
  pool_entry* oldest_ = nullptr;  // by the time since which they are idle
  pool_entry* newest_ = nullptr;
  std::size_t idle_ = 0, total_ = 0;
  std::uint64_t look_ = 0;
  bool closed_ = false;
  pool_counts done_;  // the counters so far
  event drained_;
};

}  // namespace kit

}  // namespace troupe
