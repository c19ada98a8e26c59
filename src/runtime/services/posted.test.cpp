#include "runtime/services/posted.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe {
namespace {

// A worker disposes inside its lock; if a captured ref were dropped there, it would enter the lock
// again (B4).
TEST(posted, gives_up_what_it_holds_before_it_is_disposed_of) {
  auto* home = new actor::actor_system(actor::limits{1, 1});
  const auto held = std::make_shared<int>();
  sched::runnable& item = make_posted(*home, [held] {});

  EXPECT_EQ(item.type->run(item), sched::after_turn::gone);

  EXPECT_EQ(held.use_count(), 1);
  item.type->dispose(item);
  actor::actor_system::destroy(home);
}

}  // namespace
}  // namespace troupe
