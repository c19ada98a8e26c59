// found: what a search must do with a planted bug.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>

#include "explore/planted.hpp"
#include "sched/exploring/schedule_file.hpp"

namespace planted {

inline void PrintTo(const bug& of, std::ostream* to) { *to << of.name; }

// It is found in 500 schedules, reduced to a few holds in 50 executions, and repeated each time;
// with one hold less it does not happen.
inline void expect_found_reduced_and_repeated(const bug& of) {
  const troupe::explore_report report = troupe::explore(of.body);
  ASSERT_FALSE(report) << report;
  EXPECT_NE(report.failure.find(of.says), std::string::npos) << report;
  EXPECT_LE(report.schedules, 500u);
  EXPECT_LE(report.shrinking_runs, 50u);
  EXPECT_TRUE(report.reduced) << report;
  EXPECT_LE(report.holds, 3u) << report;
  for (int i = 0; i < 100; ++i) {
    const troupe::explore_report again = troupe::replay(of.body, report.schedule);
    ASSERT_EQ(again.failure, report.failure);
    EXPECT_EQ(again.unmet, "");
  }
  const auto kept = troupe::sched::exploring::parse_schedule(report.schedule, "the report");
  for (std::size_t left_out = 0; left_out < kept.plan.holds.size(); ++left_out) {
    auto fewer = kept;
    fewer.plan.holds.erase(fewer.plan.holds.begin() + static_cast<std::ptrdiff_t>(left_out));
    EXPECT_EQ(troupe::replay(of.body, text_of(fewer)).failure, "") << "without hold " << left_out;
  }
}

}  // namespace planted
