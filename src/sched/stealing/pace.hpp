// pace: how much work a worker has, as far as another worker can see.
#pragma once

#include <cstdint>

#include "sched/stealing/worker.hpp"

namespace troupe::sched {

struct pace {
  // A worker that is in one turn for longer than this is stuck.
  static constexpr std::int64_t stuck_ns = 40'000;
  // Looks that follow each other faster than this show nothing.
  static constexpr std::int64_t span_min_ns = 1'000;
  // An earlier look is of no use after this time.
  static constexpr std::int64_t memory_ns = 4'000'000;
  // Whatever waits behind a stuck worker's turn is worth taking: it counts as this much.
  static constexpr std::int64_t stuck_backlog_ns = 300'000'000;
  static constexpr std::int64_t long_stuck_ns = 1'000'000;

  std::int64_t backlog_ns = 0;  // how long the whole queue takes; 0: not known yet
  std::int64_t turn_ns = 0;     // the mean
  // and for so long that even its only queued runnable should be taken away
  bool is_stuck = false;

  // By the turns that the worker has done since it was last looked at, or since it became busy.
  // Any thread; reads and writes hints alone.
  static pace of(worker& seen, std::int64_t now, std::int64_t memory = memory_ns) noexcept {
    // order: relaxed (all)  hints
    const std::uint64_t turns = seen.turns.load(std::memory_order_relaxed);
    const std::int64_t span = now - seen.seen_at_ns.load(std::memory_order_relaxed);
    const std::uint64_t done = turns - seen.seen_turns.load(std::memory_order_relaxed);
    // Another searcher has looked a moment ago, or with a later clock: that shows nothing of the
    // pace.
    if (span < span_min_ns) return {};
    if (done == 0)
      return span >= stuck_ns ? pace{stuck_backlog_ns, span, span >= long_stuck_ns} : pace{};
    seen.seen_turns.store(turns, std::memory_order_relaxed);  // order: relaxed  as above
    seen.seen_at_ns.store(now, std::memory_order_relaxed);    // order: relaxed  as above
    if (span > memory) return {};
    const std::int64_t turn_ns = span / static_cast<std::int64_t>(done);
    return {static_cast<std::int64_t>(seen.backlog()) * turn_ns, turn_ns, false};
  }
};

}  // namespace troupe::sched
