#include "base/side_channels/side_channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/clock.hpp"

namespace troupe::base {
namespace {

std::string reports_of(auto act) {
  testing::internal::CaptureStderr();
  act();
  return testing::internal::GetCapturedStderr();
}

TEST(side_channel, reports_the_first_failure_and_its_end) {
  constinit static side_channel channel("the test");
  EXPECT_TRUE(channel.may_try());
  EXPECT_EQ(reports_of([] { channel.failed("no \x1b folder", ENOENT, "make it"); }),
            "troupe: the test fails: no ? folder: No such file or directory; make it (the program "
            "continues)\n");
  EXPECT_TRUE(channel.is_failing());
  EXPECT_EQ(reports_of([] {
              for (int i = 0; i < 100; ++i) channel.failed("again");
            }),
            "");
  EXPECT_EQ(channel.failures(), 101u);
  EXPECT_EQ(reports_of([] { channel.works(); }), "troupe: the test works again\n");
  EXPECT_FALSE(channel.is_failing());
  EXPECT_EQ(reports_of([] { channel.works(); }), "");
}

TEST(side_channel, that_fails_and_works_by_turns_is_reported_once_a_minute) {
  constinit static side_channel channel("the test");
  const std::string reports = reports_of([] {
    for (int i = 0; i < 100; ++i) {
      channel.failed("by turns");
      channel.works();
    }
  });
  EXPECT_EQ(std::count(reports.begin(), reports.end(), '\n'), 2) << reports;
}

TEST(side_channel, is_tried_again_after_pauses_that_double_up_to_a_limit) {
  constinit static side_channel channel("the test");
  static_cast<void>(reports_of([] {
    std::int64_t pause_ns = side_channel::pause_min_ns;
    for (int i = 0; i < 40; ++i) {
      const std::int64_t before_ns = now_ns();
      channel.failed("again");
      const std::int64_t after_ns = now_ns();
      EXPECT_FALSE(channel.may_try());
      EXPECT_GE(channel.next_try_ns(), before_ns + pause_ns);
      EXPECT_LE(channel.next_try_ns(), after_ns + pause_ns);
      pause_ns = std::min(2 * pause_ns, side_channel::pause_max_ns);
    }
    EXPECT_EQ(pause_ns, side_channel::pause_max_ns);
    channel.works();
    EXPECT_EQ(channel.next_try_ns(), 0);
    EXPECT_TRUE(channel.may_try());
  }));
}

}  // namespace
}  // namespace troupe::base
