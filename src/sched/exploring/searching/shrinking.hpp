// shrinking: reduces a schedule that fails to a few holds.
//
// An execution of any strategy with one message a turn is the plain one with holds: each turn that
// was overtaken by a younger one is held until the last of these has ended. Of these holds most do
// not matter, and delta debugging leaves them out. Each execution is compared by its failure, in
// which digits do not count.
// Thread: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

struct outcome {
  std::string failure;  // empty if there was none
  std::shared_ptr<const execution> seen;
};
using runner = std::function<outcome(const schedule&, bool records)>;

struct shrunk {
  schedule plan;  // of holds, unless they do not repeat the failure
  outcome last;   // of the plan
  bool reduced = false;
  unsigned runs = 0;
};

inline constexpr unsigned shrinking_runs_max = 50;

// A search whose failing schedule has not become a few holds continues, since another one may: for
// as many schedules again and `further_schedules`, and at most so many failures in all.
inline constexpr std::size_t few_holds = 3;
inline constexpr std::uint64_t further_schedules = 150;
inline constexpr unsigned shrunk_failures_max = 8;
bool is_small(const shrunk& found) noexcept;
bool is_smaller(const shrunk& candidate, const shrunk& other) noexcept;

shrunk shrink(const schedule& failing, const outcome& failed, const runner& run);

// The holds that make the plain execution that one.
std::vector<hold> holds_of(const execution& seen);
// Whether both are the same failure, but for numbers.
bool same_failure(const std::string& candidate, const std::string& other);

}  // namespace troupe::sched::exploring
