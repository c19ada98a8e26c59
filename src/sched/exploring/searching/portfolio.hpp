// portfolio: which schedules a search tries, and in which order.
//
// No strategy finds all bugs: each therefore has a fixed share. The first schedule is the plain
// one, the oldest runnable first; its observations size the others. Half of the schedules with one
// hold go through the runnables of the plain run in an order without repeats: a bug that needs one
// message to be late is found for certain if the program is small.
// Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

class portfolio {
 public:
  // `faults`: every third schedule has a fault, alone or beside a hold.
  explicit portfolio(std::uint64_t seed, bool faults = false) noexcept
      : seed_(seed), faults_(faults) {}
  // The schedule to begin with. It has to record.
  schedule plain() const;
  // Takes the sizes of the plain run. `turns_max` 0: twenty times the turns of the plain run, and
  // ten thousand.
  void size_by(const execution& plain, std::uint64_t turns_max);
  // The `number`-th schedule, from 1 on.
  schedule at(std::uint64_t number) const;

 private:
  void hold_one(schedule& plan, std::uint64_t nth) const;
  void hold_return(schedule& plan, std::uint64_t nth) const;
  void hold_some(schedule& plan, std::uint64_t nth) const;
  void hold_two(schedule& plan, std::uint64_t nth) const;
  void hold_three(schedule& plan) const;
  bool add_fault(schedule& plan, std::uint64_t nth) const;

  const std::uint64_t seed_;
  const bool faults_;
  std::uint64_t turns_ = 1, turns_max_ = UINT64_MAX, arrivals_ = 1, returns_ = 0, connections_ = 0;
  std::vector<std::uint64_t> contested_, contested_returns_;
  fault_counts fault_points_{};
};

// The name of the schedule's strategy, for reports.
std::string_view name_of(const schedule& plan) noexcept;

}  // namespace troupe::sched::exploring
