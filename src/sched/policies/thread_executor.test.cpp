#include "sched/policies/thread_executor.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/runtime_host.hpp"

namespace troupe::sched {
namespace {

// A runnable that counts its turns, and asks for more of them.
struct task : runnable {
  std::vector<task*>* log = nullptr;
  int turns_left = 1;  // asks for another turn while more than one is left
  int deactivation_refusals = 0;
  bool gone = false, disposed = false, discarded = false;
  task();
};

const runnable_vtable task_type{
    [](runnable& item) {
      auto& self = static_cast<task&>(item);
      self.log->push_back(&self);
      if (--self.turns_left > 0) return after_turn::again;
      return self.gone ? after_turn::gone : after_turn::quiet;
    },
    [](runnable& item) { return static_cast<task&>(item).deactivation_refusals-- <= 0; },
    [](const runnable&) { return false; },
    [](runnable& item) noexcept { static_cast<task&>(item).disposed = true; },
    [](runnable& item) noexcept { static_cast<task&>(item).discarded = true; },
};
task::task() { type = &task_type; }

class thread_executor_test : public testing::Test {
 protected:
  outstanding_work alive;
  test::runtime_host runtime;
  const int& ends = runtime.times_out_of_work;
  thread_executor lane{alive, runtime};
  std::vector<task*> log;
  void submit(task& one) {
    one.log = &log;
    lane.submit(one);
  }
  void run_dry() {
    while (lane.run_one()) {
    }
  }
};

TEST_F(thread_executor_test, runs_what_is_submitted_in_order) {
  task one, two, three;
  submit(one), submit(two), submit(three);
  EXPECT_EQ(alive.count(), 3);
  run_dry();
  EXPECT_EQ(log, (std::vector<task*>{&one, &two, &three}));
  EXPECT_TRUE(alive.empty());
  EXPECT_EQ(ends, 1);
}

TEST_F(thread_executor_test, those_that_have_more_to_do_take_turns_with_the_others) {
  task one, two;
  one.turns_left = 3;
  submit(one), submit(two);
  EXPECT_TRUE(lane.run_one());
  task late;
  submit(late);
  run_dry();
  // A runnable that arrives while another one has a turn runs before or after that one's next turn,
  // but it never waits for that one's last turn.
  ASSERT_EQ(log.size(), 5u);
  EXPECT_EQ(log[0], &one);
  EXPECT_EQ(log[1], &two);
  EXPECT_EQ(log[4], &one);
  EXPECT_EQ(ends, 1);
}

TEST_F(thread_executor_test, one_that_got_work_while_it_deactivated_runs_again) {
  task one;
  one.deactivation_refusals = 2;
  submit(one);
  run_dry();
  EXPECT_EQ(log.size(), 3u);
  EXPECT_TRUE(alive.empty());
}

TEST_F(thread_executor_test, the_gone_are_disposed_of) {
  task one;
  one.gone = true;
  submit(one);
  run_dry();
  EXPECT_TRUE(one.disposed);
  EXPECT_TRUE(alive.empty());
}

TEST_F(thread_executor_test, what_is_discarded_does_not_run_and_does_not_count) {
  task one, two;
  submit(one), submit(two);
  lane.discard_all();
  EXPECT_TRUE(one.discarded && two.discarded);
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(alive.empty());
  EXPECT_EQ(ends, 1);
  EXPECT_FALSE(lane.run_one());
}

TEST_F(thread_executor_test, a_submit_wakes_the_sleeping_owner) {
  task one;
  std::thread other([&] { submit(one); });
  while (!lane.run_one()) lane.wait();
  other.join();
  EXPECT_EQ(log.size(), 1u);
  lane.poke();
  lane.wait();
  EXPECT_FALSE(lane.wait_for(std::chrono::microseconds(1)));
}

}  // namespace
}  // namespace troupe::sched
