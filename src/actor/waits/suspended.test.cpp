#include "actor/waits/suspended.hpp"

#include <gtest/gtest.h>

namespace troupe::actor {
namespace {

TEST(suspended, a_report_says_what_could_not_be_looked_at) {
  EXPECT_EQ(describe(not_held{}), "");
  EXPECT_EQ(describe(not_held{.workers = 1, .actors = 0}),
            "\n  not looked at: what waits at 1 worker, busy at each try");
  EXPECT_EQ(describe(not_held{.workers = 0, .actors = 1}),
            "\n  not looked at: 1 suspended actor, sent mail at each try");
  EXPECT_EQ(describe(not_held{.workers = 2, .actors = 3}),
            "\n  not looked at: what waits at 2 workers, busy at each try; 3 suspended actors, "
            "sent mail at each try");
}

}  // namespace
}  // namespace troupe::actor
