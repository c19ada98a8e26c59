#include "sched/exploring/searching/portfolio.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace troupe::sched::exploring {
namespace {

enum class share : std::uint8_t {
  random,
  one_message,
  priorities_1,
  priorities_2,
  priorities_3,
  one_hold,
  one_late_hold,
  one_return,
  one_late_return,
  some_holds,
  two_holds,
  three_holds,
  connections,
};

// Twenty-five schedules in a row.
constexpr std::array shares{
    share::one_message,  share::one_hold,    share::priorities_2,  share::random,
    share::one_return,   share::one_hold,    share::priorities_1,  share::one_message,
    share::two_holds,    share::some_holds,  share::priorities_3,  share::one_hold,
    share::random,       share::one_return,  share::one_late_hold, share::priorities_2,
    share::one_message,  share::one_hold,    share::three_holds,   share::one_late_return,
    share::priorities_3, share::connections, share::two_holds,     share::one_message,
    share::some_holds};

// The nth of `count` numbers, of which none comes twice in a row of that length.
std::uint64_t scattered(std::uint64_t nth, std::uint64_t count) noexcept {
  // about the golden section of the count, and without a common divisor
  std::uint64_t stride = std::max<std::uint64_t>(count * 618 / 1'000, 1);
  while (std::gcd(stride, count) != 1) ++stride;
  return (nth % count) * stride % count;
}

}  // namespace

schedule portfolio::plain() const {
  schedule plan;
  plan.seed = seed_;
  plan.turns_max = turns_max_;
  return plan;
}

void portfolio::size_by(const execution& plain, std::uint64_t turns_max) {
  turns_ = std::max<std::uint64_t>(plain.turns, 1);
  turns_max_ = turns_max != 0 ? turns_max : 20 * turns_ + 10'000;
  connections_ = plain.connections;
  arrivals_ = std::max<std::uint64_t>(plain.arrivals, 1);
  fault_points_ = plain.fault_points;
  contested_ = plain.contested;
  returns_ = plain.returns;
  contested_returns_ = plain.contested_returns;
  if (contested_.empty()) contested_.push_back(1);
}

void portfolio::hold_one(schedule& plan, std::uint64_t nth) const {
  const std::uint64_t count = plan.late ? arrivals_ : contested_.size();
  if (nth >= count && count > 2) return hold_two(plan, nth - count);
  const std::uint64_t place = scattered(nth, count);
  plan.held_arrivals.push_back(plan.late ? 1 + place : contested_[place]);
}

// A turn that is not the first one of its runnable: the next part of a coroutine, or the next
// message of an actor that has several.
void portfolio::hold_return(schedule& plan, std::uint64_t nth) const {
  const std::uint64_t count = plan.late ? returns_ : contested_returns_.size();
  if (nth >= count) return hold_some(plan, nth - count);
  const std::uint64_t place = scattered(nth, count);
  plan.held_returns.push_back(plan.late ? 1 + place : contested_returns_[place]);
}

// Two turns, or three, of either sort.
void portfolio::hold_some(schedule& plan, std::uint64_t nth) const {
  std::mt19937_64 random(plan.seed);
  const std::uint64_t first = contested_.size(), all = first + contested_returns_.size();
  for (std::uint64_t i = 0; i < 2 + nth % 2; ++i) {
    const std::uint64_t place = random() % all;
    place < first ? plan.held_arrivals.push_back(contested_[place])
                  : plan.held_returns.push_back(contested_returns_[place - first]);
  }
}

void portfolio::hold_two(schedule& plan, std::uint64_t nth) const {
  const std::uint64_t count = contested_.size(), pairs = count * (count - 1) / 2;
  if (nth >= pairs) return hold_three(plan);
  std::uint64_t pair = scattered(nth, pairs), first = 0;
  while (pair >= count - 1 - first) pair -= count - 1 - first++;
  plan.held_arrivals = {contested_[first], contested_[first + 1 + pair]};
}

void portfolio::hold_three(schedule& plan) const {
  std::mt19937_64 random(plan.seed);
  for (int i = 0; i < 3; ++i)
    plan.held_arrivals.push_back(contested_[random() % contested_.size()]);
}

// The faults of the plain run, each at each place, without repeats; then the same beside a hold.
// False if the plain run has no place for any.
bool portfolio::add_fault(schedule& plan, std::uint64_t nth) const {
  constexpr std::array kinds{fault::cut,           fault::lost,        fault::write_fails,
                             fault::slow,          fault::slow_file,   fault::storage_fails,
                             fault::storage_cut,   fault::commit_lost, fault::storage_slow,
                             fault::storage_stalls};
  std::uint64_t count = 0;
  const auto places = [this](fault kind) {
    return fault_points_[static_cast<std::size_t>(place_of(kind))];
  };
  for (const fault kind : kinds) count += places(kind);
  if (count == 0) return false;
  if (nth >= count) hold_one(plan, nth - count);
  std::uint64_t left = scattered(nth, count);
  for (const fault kind : kinds) {
    if (left < places(kind)) {
      plan.faults.push_back({kind, 1 + left});
      break;
    }
    left -= places(kind);
  }
  return true;
}

schedule portfolio::at(std::uint64_t number) const {
  schedule plan = plain();
  plan.seed = seed_ + number;
  plan.turns_expected = turns_;
  constexpr std::uint64_t between_faults = 3;
  if (faults_ && number % between_faults == 0 && add_fault(plan, number / between_faults - 1))
    return plan;
  const std::size_t place = (number - 1) % shares.size();
  const share chosen = shares[place];
  const auto of_a_round = static_cast<std::uint64_t>(std::ranges::count(shares, chosen));
  const auto before = static_cast<std::uint64_t>(
      std::count(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(place), chosen));
  const std::uint64_t nth = (number - 1) / shares.size() * of_a_round + before;
  switch (chosen) {
    case share::random:
      plan.by = strategy::random;
      break;
    case share::one_message:
      plan.by = strategy::one_message;
      break;
    case share::priorities_1:
    case share::priorities_2:
    case share::priorities_3:
      plan.by = strategy::priorities;
      plan.depth = 1 + static_cast<unsigned>(chosen) - static_cast<unsigned>(share::priorities_1);
      plan.inherits = nth % 2 == 0;
      break;
    case share::one_late_hold:
      plan.late = true;
      [[fallthrough]];
    case share::one_hold:
      hold_one(plan, nth);
      break;
    case share::one_late_return:
      plan.late = true;
      [[fallthrough]];
    case share::one_return:
      hold_return(plan, nth);
      break;
    case share::some_holds:
      hold_some(plan, nth);
      break;
    case share::two_holds:
      hold_two(plan, nth);
      break;
    case share::three_holds:
      plan.late = nth % 2 == 1;
      hold_three(plan);
      break;
    case share::connections:
      hold_two(plan, nth);
      if (connections_ == 0) break;
      if (nth % 2 == 0) plan.held_arrivals.clear();
      plan.held_connections.push_back(1 + nth % connections_);
      break;
  }
  return plan;
}

std::string_view name_of(const schedule& plan) noexcept {
  switch (plan.by) {
    case strategy::random:
      return "random";
    case strategy::one_message:
      return "one message a turn";
    case strategy::priorities:
      return "priorities";
    case strategy::holds:
      break;
  }
  if (!plan.faults.empty()) return "a fault";
  return plan.holds.empty() && plan.held_arrivals.empty() && plan.held_returns.empty() &&
                 plan.held_connections.empty()
             ? "the oldest first"
             : "holds";
}

}  // namespace troupe::sched::exploring
