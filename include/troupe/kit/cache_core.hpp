// cache_core: the part of a cache that does not depend on the types of its keys and values. For the
// library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>

#include "troupe/base/small_mutex.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/sync/permits.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe {

// Options of a cache. A value that makes no sense is an option_error.
//
// Example:
//     troupe::cache<int, int> squares({.entries_max = 100,
//                                      .expire_after_write = std::chrono::minutes(5),
//                                      .keep_failures = std::chrono::seconds(1)},
//                                     [](const int& n) { return n * n; });
struct cache_options {
  // How many entries the cache keeps at most; it drops the least recently used entry first.
  // Default 10,000; at least 1.
  std::size_t entries_max = 10'000;
  // The time for which an entry is valid after it was loaded or put. Default: no limit; longer than
  // 0.
  time_span expire_after_write = time_span::max();
  // The time for which an entry is valid after its last use. Default: no limit; longer than 0.
  time_span expire_after_access = time_span::max();
  // The time for which a failed load is kept: get() throws its error again. Such an entry counts
  // among entries_max. Default 0: failures are not kept.
  time_span keep_failures{};
};

// A cache's gauges, and its counters since the beginning.
struct cache_counts {
  std::size_t entries = 0;    // with kept failures, and with expired ones that were not asked for
  std::uint64_t hits = 0;     // lookups that found an entry
  std::uint64_t misses = 0;   // lookups that did not
  std::uint64_t joined = 0;   // misses that waited for a load that had begun already
  std::uint64_t loads = 0;    // loads that were begun
  std::uint64_t failed = 0;   // loads that threw
  std::uint64_t evicted = 0;  // entries that were dropped because of entries_max
  std::uint64_t expired = 0;  // entries that were dropped because of their time
};

namespace kit {

class cache_core {
 public:
  explicit cache_core(const cache_options& given);
  cache_core(const cache_core&) = delete;
  cache_core& operator=(const cache_core&) = delete;
  ~cache_core();

  const cache_options options;

 protected:
  struct entry_times {
    std::int64_t written_ns = 0, used_ns = 0;
  };
  // Under the mutex.
  std::int64_t now_ns() noexcept;
  bool is_expired(const entry_times& times, bool is_failure, std::int64_t now) const noexcept;

  mutable base::small_mutex mutex_;
  cache_counts done_;

 private:
  class clock_state;
  const std::unique_ptr<clock_state> clock_;
};

// One load of a key, and the parties that wait for it. The party that has the turn loads; if it
// gives up, the next party gets the turn. When the load is over, all parties have the turn.
class cache_flight {
 public:
  struct waiting : sync::permit_waiter {
    static constexpr const char* name = "a load of a cache";
    explicit waiting(sync::permits& turn) noexcept : permits(&turn) {}
    waiting(waiting&& other) noexcept : permits(other.permits) {}
    bool start() noexcept { return permits->take_or_wait(*this); }
    bool withdraw() noexcept { return permits->withdraw(*this); }
    bool put_back() noexcept {
      permits->give(1);
      return true;
    }
    void finish() noexcept {}
    sync::permits* permits;
  };
  sync::awaiting<waiting> wait() noexcept { return sync::awaiting<waiting>(std::in_place, turn_); }
  // Passes the turn on.
  void leave() noexcept { turn_.give(1); }
  // By the holder of the turn, which leaves it afterwards.
  void end() noexcept {
    over_ = true;
    turn_.give(sync::permits::most / 2);
  }
  // Asked by a holder of the turn.
  bool is_over() const noexcept { return over_; }

  std::size_t parties = 0;  // guarded by the cache's mutex

 private:
  sync::permits turn_{1};
  bool over_ = false;
};

// Has the turn of a flight.
class flight_turn {
 public:
  explicit flight_turn(cache_flight& flight) noexcept : flight_(flight) {}
  flight_turn(const flight_turn&) = delete;
  flight_turn& operator=(const flight_turn&) = delete;
  ~flight_turn() { flight_.leave(); }

 private:
  cache_flight& flight_;
};

// Whether a load failed only because the party that ran it gave up: because it was cancelled, or
// because its own time is over.
bool gave_up(const std::exception_ptr& failed, const tasks::limits& within);

}  // namespace kit

}  // namespace troupe
