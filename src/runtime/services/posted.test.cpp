#include "runtime/services/posted.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "actor/root/actor_root.hpp"
#include "support/runtime_host.hpp"

namespace troupe {
namespace {

class deaf_host final : public test::host_of<actor::actor_host> {
 public:
  void failed(const actor::failed_call&, std::exception_ptr) noexcept override {}
  void dead_letter(const actor::failed_call&) noexcept override {}
  void escalated() noexcept override {}
  void run_blocking(unique_function<void()> call) override { call(); }
};

// A worker disposes inside its lock; if a captured ref were dropped there, it would enter the lock
// again (B4).
TEST(posted, gives_up_what_it_holds_before_it_is_disposed_of) {
  deaf_host runtime;
  auto* home = actor::make_actor_system(actor::limits{1, 1}, runtime, false);
  const auto held = std::make_shared<int>();
  sched::runnable& item = make_posted(*home, [held] {});

  EXPECT_EQ(item.type->run(item), sched::after_turn::gone);

  EXPECT_EQ(held.use_count(), 1);
  item.type->dispose(item);
  actor::destroy_actor_system(*home);
}

}  // namespace
}  // namespace troupe
