// livelock: looks whether an execution that takes many turns goes round: a bound on its turns, and
// states of its mailboxes and waits that come again.
//
// A state is the sum of the names of all messages that were sent and not handled, and of the lines
// where handlers wait (execution::state). The actors' objects are no part of it: it comes again in
// a loop that counts as well, and therefore proves nothing below the bound. A program whose state
// does not come again may only be long, and has twice as many turns.
//
// Thread: the simulation's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sched/exploring/schedule.hpp"
#include "sched/exploring/story_listener.hpp"
#include "troupe/base/error.hpp"

namespace troupe::sched::exploring {

// Begins the part of a failure's text that may differ from schedule to schedule.
inline constexpr std::string_view last_turns_mark = "\n  its last turns ran ";

class livelock {
 public:
  // After each turn. Throws stalled.
  void after_turn(const execution& seen);

 private:
  static constexpr std::uint64_t last_turns = 10'000, longer = 2;
  std::string handlers() const;
  bool comes_again() const noexcept { return 2 * states_.size() <= looked_at_; }

  // of the last turns below the bound
  std::unordered_set<std::uint64_t> states_;
  std::unordered_map<const char*, std::uint64_t> handlers_;
  std::uint64_t looked_at_ = 0;
  bool is_longer_ = false;  // the first bound was passed
};

inline void livelock::after_turn(const execution& seen) {
  const std::uint64_t most = seen.plan.turns_max;
  const std::uint64_t bound = is_longer_ && most <= UINT64_MAX / longer ? most * longer : most;
  if (seen.is_watched && seen.turns > bound - std::min(bound, last_turns)) {
    ++looked_at_;
    states_.insert(seen.state);
    if (seen.last_handler != nullptr) ++handlers_[seen.last_handler];
  }
  if (seen.turns <= bound) return;
  const std::string turns = std::to_string(seen.turns) + " turns";
  if (!seen.is_watched || comes_again()) {
    throw stalled(
        "troupe: explore: a suspected livelock: the program is not out of work after " + turns +
        (seen.is_watched ? ", and its mailboxes and waits are the same again and again" + handlers()
                         : std::string()));
  }
  if (is_longer_) {
    throw stalled("troupe: explore: the program is not out of work after " + turns +
                  "; its mailboxes and waits do not become the same again: it grows, or it is long "
                  "(explore_options::turns)" +
                  handlers());
  }
  is_longer_ = true;
  states_.clear();
  handlers_.clear();
  looked_at_ = 0;
}

// The handlers that ran most often.
inline std::string livelock::handlers() const {
  std::vector<std::pair<std::uint64_t, std::string>> most;
  for (const auto& [name, count] : handlers_) most.emplace_back(count, without_qualifiers(name));
  std::ranges::sort(most, std::greater<>());
  constexpr std::size_t told = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(told, most.size()); ++i) {
    text += i == 0 ? std::string(last_turns_mark) : ", ";
    text += most[i].second + " (" + std::to_string(most[i].first) + " times)";
  }
  return text;
}

}  // namespace troupe::sched::exploring
