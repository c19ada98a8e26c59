#include "sched/stealing/idle_workers.hpp"

#include <gtest/gtest.h>

namespace troupe::sched {
namespace {

struct sleeper {
  sleeper* next_sleeper = nullptr;
  bool called = false;
};

TEST(idle_workers, the_first_idle_one_leads_and_the_others_sleep) {
  idle_workers<sleeper> all;
  sleeper one, two, three;
  EXPECT_EQ(all.call(), nullptr) << "nobody is there";
  EXPECT_TRUE(all.lead_or_sleep(one));
  EXPECT_FALSE(all.lead_or_sleep(two));
  EXPECT_FALSE(all.lead_or_sleep(three));
  EXPECT_EQ(all.call(), nullptr) << "one is awake and will look";
}

TEST(idle_workers, after_a_hand_over_the_last_that_slept_is_called_first) {
  idle_workers<sleeper> all;
  sleeper one, two, three;
  ASSERT_TRUE(all.lead_or_sleep(one));
  ASSERT_FALSE(all.lead_or_sleep(two));
  ASSERT_FALSE(all.lead_or_sleep(three));
  all.stop_searching();
  EXPECT_EQ(all.call(), &three);
  EXPECT_TRUE(all.called(three));
  EXPECT_FALSE(all.called(three)) << "once";
  EXPECT_EQ(all.call(), nullptr) << "the called one is the searcher";
  all.stop_searching();
  EXPECT_EQ(all.call(), &two);
  EXPECT_TRUE(all.called(two));
  all.stop_searching();
  EXPECT_EQ(all.call(), nullptr) << "all are busy";
}

TEST(idle_workers, a_sleeper_that_was_not_called_knows_it) {
  idle_workers<sleeper> all;
  sleeper one, two;
  ASSERT_TRUE(all.lead_or_sleep(one));
  ASSERT_FALSE(all.lead_or_sleep(two));
  EXPECT_FALSE(all.called(two));
}

TEST(idle_workers, a_searcher_that_goes_to_sleep_resumes_or_is_called) {
  idle_workers<sleeper> all;
  sleeper one, two;
  ASSERT_TRUE(all.lead_or_sleep(one));
  all.sleep(one, false);
  EXPECT_TRUE(all.resume(one)) << "it saw work after all";
  all.sleep(one, false);
  EXPECT_EQ(all.call(), &one);
  EXPECT_TRUE(all.resume(one)) << "the call made it the searcher";
  EXPECT_FALSE(one.called);
  all.sleep(one, false);
  ASSERT_TRUE(all.lead_or_sleep(two));
  EXPECT_FALSE(all.resume(one)) << "another one is awake";
}

TEST(idle_workers, a_watcher_stays_while_others_can_be_called) {
  idle_workers<sleeper> all;
  sleeper one, two;
  ASSERT_TRUE(all.lead_or_sleep(one));
  EXPECT_TRUE(all.sleep(one, true)) << "watches";
  EXPECT_FALSE(all.lead_or_sleep(two)) << "somebody watches";
  EXPECT_EQ(all.call(), &two);
  EXPECT_TRUE(all.called(two));
  all.stop_searching();
  EXPECT_EQ(all.call(), &one) << "the watcher, when nobody else is there";
  EXPECT_TRUE(all.resume(one));
}

TEST(idle_workers, it_is_lonely_when_some_sleep_and_nobody_searches_or_watches) {
  idle_workers<sleeper> all;
  sleeper one, two;
  EXPECT_EQ(all.lonely().load(), 0u) << "nobody sleeps";
  ASSERT_TRUE(all.lead_or_sleep(one));
  ASSERT_FALSE(all.lead_or_sleep(two));
  EXPECT_EQ(all.lonely().load(), 0u) << "one searches";
  all.stop_searching();
  EXPECT_EQ(all.lonely().load(), 1u);
  ASSERT_EQ(all.call(), &two);
  EXPECT_EQ(all.lonely().load(), 0u);
  ASSERT_TRUE(all.called(two));
  EXPECT_TRUE(all.sleep(two, true));
  EXPECT_EQ(all.lonely().load(), 0u) << "one watches";
}

}  // namespace
}  // namespace troupe::sched
