#include "troupe/task/trace_context.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace troupe {
namespace {

TEST(trace_context, the_example_of_the_standard_is_read_and_written) {
  const std::string field = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto read = trace_context::parse(field);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id[0], 0x4b);
  EXPECT_EQ(read->trace_id[15], 0x36);
  EXPECT_EQ(read->span_id[1], 0xf0);
  EXPECT_TRUE(read->sampled);
  EXPECT_EQ(read->traceparent(), field);
  const auto unsampled = trace_context::parse(field.substr(0, 53) + "00");
  ASSERT_TRUE(unsampled);
  EXPECT_FALSE(unsampled->sampled);
}

TEST(trace_context, a_later_version_may_have_more_parts) {
  const std::string rest = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_TRUE(trace_context::parse("01" + rest));
  EXPECT_TRUE(trace_context::parse("cc" + rest + "-what the future brings"));
  EXPECT_FALSE(trace_context::parse("cc" + rest + "."));
  EXPECT_FALSE(trace_context::parse("00" + rest + "-"));
  EXPECT_FALSE(trace_context::parse("ff" + rest));
}

TEST(trace_context, what_breaks_the_rules_is_no_context) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(trace_context::parse(good.substr(0, i))) << i;
    std::string changed = good;
    changed[i] = 'F';
    EXPECT_FALSE(trace_context::parse(changed)) << i;
    changed[i] = '\0';
    EXPECT_FALSE(trace_context::parse(changed)) << i;
  }
  EXPECT_FALSE(trace_context::parse("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
  EXPECT_FALSE(trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
}

TEST(trace_context, new_ones_differ) {
  std::set<std::string> seen;
  const trace_context first = trace_context::begin();
  for (int i = 0; i < 1000; ++i) {
    const trace_context child = first.child();
    EXPECT_EQ(child.trace_id, first.trace_id);
    seen.insert(child.traceparent());
    seen.insert(trace_context::begin().traceparent());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

}  // namespace
}  // namespace troupe
