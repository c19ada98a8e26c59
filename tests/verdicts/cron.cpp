// The error of schedules.
#include <gtest/gtest.h>

#include "troupe/cron/schedule.hpp"
#include "verdicts/table.hpp"

namespace troupe::test {
namespace {

TEST(verdicts, of_schedules) {
  expect_verdicts({
      {"cron_error", "", made<cron_error>(cron_field::hour, "x"), {caller, none, never}},
  });
}

}  // namespace
}  // namespace troupe::test
