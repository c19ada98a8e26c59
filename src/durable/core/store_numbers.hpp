// store_numbers: the counts of a store since it was opened, and how they are shown.
//
// Lock: the engine's mutex is held in each function, but for store_numbers::add_to().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/counting/histogram.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::durable::parts {

// The numbers of one moment.
struct store_numbers {
  durable::counts counts;
  observe::distribution commit_time, commit_turns;

  void add_to(observe::row_sink& sink, const std::vector<std::string>& labels) const;
};

class numbers {
 public:
  numbers() = default;
  numbers(const numbers&) = delete;
  numbers& operator=(const numbers&) = delete;

  // All but the numbers of actors and messages in memory.
  durable::counts counts;

  void count_commit(std::uint64_t turns, std::int64_t took_ns) noexcept;
  // `now` has all counts.
  store_numbers with_commits(const durable::counts& now) const;

 private:
  observe::value_counts commit_ns_, commit_turns_;
};

}  // namespace troupe::durable::parts
