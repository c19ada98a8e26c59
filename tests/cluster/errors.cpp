// What a program does about a failure depends on its kind alone.
#include <gtest/gtest.h>

#include "troupe/cluster/error.hpp"

namespace troupe::test {
namespace {

TEST(cluster_errors, a_lost_message_alone_may_have_run) {
  using enum cluster::failure;
  for (const auto kind : {unreachable, lost, unknown_method, too_large, full, malformed, stopped}) {
    const cluster::error one(kind, "words");
    EXPECT_EQ(one.kind(), kind);
    EXPECT_EQ(one.may_have_run(), kind == lost);
    EXPECT_STRNE(cluster::name_of(kind), "unknown");
  }
}

}  // namespace
}  // namespace troupe::test
