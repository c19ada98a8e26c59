#include "sched/exploring/searching/shrinking.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text/digit.hpp"
#include "sched/exploring/livelock.hpp"

namespace troupe::sched::exploring {
namespace {

using base::is_digit;

// Without digits, addresses, and the names of handlers that ran in its last turns.
std::string without_numbers(const std::string& whole) {
  const std::string text = whole.substr(0, whole.find(last_turns_mark));
  constexpr std::string_view hex = "0123456789abcdefABCDEF";
  std::string found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    if (text.compare(at, 2, "0x") == 0)
      at = std::min(text.find_first_not_of(hex, at + 2), text.size());
    while (at < text.size() && is_digit(text[at])) ++at;
    found += at == before ? text[at++] : '#';
  }
  return found;
}

class reduction {
 public:
  reduction(schedule plan, const std::string& failure, const runner& run)
      : plan_(std::move(plan)), failure_(failure), run_(run) {
    plan_.by = strategy::holds;
    plan_.held_arrivals.clear();
    plan_.held_returns.clear();
    plan_.held_connections.clear();
    plan_.faults.clear();
  }

  bool spent() const noexcept { return runs >= shrinking_runs_max; }
  // Whether the holds repeat the failure; then they are the best so far.
  bool fails(const std::vector<hold>& holds) {
    if (spent()) return false;
    ++runs;
    schedule next = plan_;
    next.holds = holds;
    const outcome result = run_(next, false);
    if (!same_failure(result.failure, failure_)) return false;
    best = {next, result};
    return true;
  }

  // The turns that were overtaken by most others are the likeliest reasons.
  bool by_few(const execution& seen, const std::vector<hold>& all);
  void open_ends();
  void by_prefixes();
  void without_parts(std::size_t leave);
  void without_ends();
  // Any two of a few turns, held until nothing else can run.
  void by_pairs();

  unsigned runs = 0;
  std::optional<std::pair<schedule, outcome>> best;

 private:
  const std::vector<hold>& holds() const noexcept { return best->first.holds; }
  schedule plan_;
  const std::string failure_;
  const runner& run_;
};

bool reduction::by_few(const execution& seen, const std::vector<hold>& all) {
  std::set<turn_id> overtaken;
  for (const hold& held : all) overtaken.insert(held.held);
  std::vector<std::pair<std::uint64_t, turn_id>> waited;
  for (std::size_t i = 0; i < seen.seen.size(); ++i) {
    const turn_seen& turn = seen.seen[i];
    if (overtaken.contains(turn.id)) waited.emplace_back(i - turn.begun, turn.id);
  }
  std::ranges::sort(waited, std::greater<>());
  constexpr std::size_t tried = 4;
  std::vector<hold> few;
  for (std::size_t i = 0; i < std::min(tried, waited.size()); ++i) {
    const hold shorter{.held = waited[i].second, .until = {}};
    if (fails({shorter})) return true;
    few.push_back(shorter);
    if (i != 0 && fails(few)) return true;
  }
  return false;
}

// A prefix of the holds leads to the same turns up to the first hold that it lacks. The last hold
// of the shortest one that fails is needed; then the same among those before it. That takes about
// log2 of their number for each hold that is needed, where delta debugging takes several times
// that.
void reduction::by_prefixes() {
  std::vector<hold> rest = holds(), needed;
  const auto with = [&](std::size_t count) {
    std::vector<hold> some(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
    some.insert(some.end(), needed.begin(), needed.end());
    return some;
  };
  while (!rest.empty() && !spent()) {
    // the needed ones alone first: most failures need few
    if (fails(needed)) return;
    std::size_t passing = 0, failing = rest.size();
    while (failing - passing > 1 && !spent()) {
      const std::size_t middle = passing + (failing - passing) / 2;
      (fails(with(middle)) ? failing : passing) = middle;
    }
    needed.insert(needed.begin(), rest[failing - 1]);
    rest.resize(failing - 1);
  }
}

// Delta debugging: leaves out parts, and smaller ones when none of a size can be left out.
void reduction::without_parts(std::size_t leave) {
  std::size_t parts = 2;
  while (holds().size() > leave && !spent()) {
    const std::vector<hold> all = holds();
    parts = std::min(parts, all.size());
    bool smaller = false;
    for (std::size_t i = 0; i < parts && !smaller; ++i) {
      const auto from = static_cast<std::ptrdiff_t>(all.size() * i / parts);
      const auto to = static_cast<std::ptrdiff_t>(all.size() * (i + 1) / parts);
      std::vector<hold> rest(all.begin(), all.begin() + from);
      rest.insert(rest.end(), all.begin() + to, all.end());
      smaller = fails(rest);
    }
    if (smaller) {
      parts = std::max<std::size_t>(parts - 1, 2);
    } else if (parts == all.size()) {
      return;
    } else {
      parts *= 2;
    }
  }
}

hold without_end(hold kept) {
  kept.until.reset();
  kept.late = false;
  return kept;
}

// Such holds depend less on each other than those that end with a turn.
void reduction::open_ends() {
  std::vector<hold> open = holds();
  for (hold& kept : open) kept = without_end(kept);
  fails(open);
}

void reduction::by_pairs() {
  constexpr std::size_t few = 8;
  const std::vector<hold> all = holds();
  if (all.size() < 3 || all.size() > few) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (fails({without_end(all[i]), without_end(all[j])})) return;
    }
  }
}

// A hold that ends when nothing else can run names one turn and not two.
void reduction::without_ends() {
  for (std::size_t i = 0; i < holds().size(); ++i) {
    if (!holds()[i].until && !holds()[i].late) continue;
    std::vector<hold> simpler = holds();
    simpler[i] = without_end(simpler[i]);
    fails(simpler);
  }
}

}  // namespace

bool same_failure(const std::string& failure, const std::string& other) {
  return failure.empty() == other.empty() && without_numbers(failure) == without_numbers(other);
}

bool is_small(const shrunk& found) noexcept {
  return found.reduced && found.plan.holds.size() <= few_holds;
}

bool is_smaller(const shrunk& found, const shrunk& other) noexcept {
  if (found.reduced != other.reduced) return found.reduced;
  return found.reduced && found.plan.holds.size() < other.plan.holds.size();
}

std::vector<hold> holds_of(const execution& seen) {
  std::vector<hold> found;
  for (std::size_t i = 0; i < seen.seen.size(); ++i) {
    const turn_seen& turn = seen.seen[i];
    for (std::size_t at = i; at-- > turn.begun;) {
      const turn_seen& earlier = seen.seen[at];
      if (earlier.runtime != turn.runtime || earlier.arrived < turn.arrived) continue;
      found.push_back({.held = turn.id, .until = earlier.id});
      break;
    }
  }
  return found;
}

shrunk shrink(const schedule& failing, const outcome& failed, const runner& run) {
  reduction by(failing, failed.failure, run);
  if (failing.by == strategy::holds) {
    std::vector<hold> holds = failing.holds;
    holds.insert(holds.end(), failed.seen->new_holds.begin(), failed.seen->new_holds.end());
    by.fails(holds);
  } else {
    ++by.runs;
    const outcome again = run(failing, true);
    if (again.failure.empty()) return {failing, failed, false, by.runs};
    std::vector<hold> all = holds_of(*again.seen);
    all.insert(all.end(), again.seen->new_holds.begin(), again.seen->new_holds.end());
    if (!by.fails({}) && !by.by_few(*again.seen, all)) by.fails(all);
  }
  if (!by.best) return {failing, failed, false, by.runs};
  constexpr std::size_t kept_for_ends = 6;
  by.open_ends();
  by.by_prefixes();
  by.without_parts(kept_for_ends);
  by.by_pairs();
  by.without_ends();
  by.without_parts(0);
  return {by.best->first, by.best->second, true, by.runs};
}

}  // namespace troupe::sched::exploring
