// A value behind a lock for readers and writers, and what may be stored in it.
#include "troupe/parallel/guarded.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "context/current_context.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
constexpr const char* long_text = "a text that is longer than a string holds by itself";

TEST(guarded, readers_are_inside_together_and_a_writer_alone) {
  guarded<int> number(1);
  auto first = number.try_read(), second = number.try_read();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(**first + **second, 2);
  EXPECT_FALSE(number.try_write());
  first->release();
  second.reset();
  auto writer = number.try_write();
  ASSERT_TRUE(writer);
  **writer = 5;
  EXPECT_FALSE(number.try_read());
  EXPECT_FALSE(number.try_write());
  writer->release();
  EXPECT_EQ(**number.try_read(), 5);
}

TEST(guarded, those_who_wait_come_in_in_order_and_nobody_overtakes_them) {
  guarded<int> number(0);
  auto inside = number.try_write();
  future<reading<int>> first = number.read(), second = number.read();
  future<writing<int>> third = number.write();
  future<reading<int>> fourth = number.read();
  EXPECT_FALSE(first.ready());
  inside->release();
  EXPECT_TRUE(first.ready() && second.ready());
  EXPECT_FALSE(third.ready() || fourth.ready());
  EXPECT_FALSE(number.try_read()) << "a writer waits";
  first.get();
  EXPECT_FALSE(third.ready());
  second.get();
  ASSERT_TRUE(third.ready());
  EXPECT_FALSE(fourth.ready());
  *third.get() = 3;
  ASSERT_TRUE(fourth.ready());
  EXPECT_EQ(*fourth.get(), 3);
}

TEST(guarded, one_who_gives_up_is_passed_over_and_a_dropped_access_goes_back) {
  guarded<int> number(0);
  auto inside = number.try_write();
  { future<writing<int>> gone = number.write(); }
  future<writing<int>> next = number.write();
  inside->release();
  EXPECT_TRUE(next.ready());
  next = {};
  EXPECT_TRUE(number.try_write());
}

TEST(guarded, an_access_outlives_it) {
  auto number = std::make_optional<guarded<std::string>>(long_text);
  auto inside = number->try_read();
  number.reset();
  EXPECT_EQ(**inside, long_text);
}

task<> add(guarded<std::vector<int>> numbers, int n, std::atomic<int>& writers) {
  auto inside = co_await numbers.write();
  EXPECT_EQ(++writers, 1);
  inside->push_back(n);
  co_await yield();
  --writers;
}
task<> look(guarded<std::vector<int>> numbers, std::atomic<int>& writers) {
  auto inside = co_await numbers.read();
  const std::size_t before = inside->size();
  EXPECT_EQ(writers.load(), 0);
  co_await yield();
  EXPECT_EQ(inside->size(), before);
}

TEST(guarded, tasks_on_all_workers_share_it_and_hold_no_thread) {
  for (const unsigned workers : {1u, 3u}) {
    runtime rt({.workers = workers});
    guarded<std::vector<int>> numbers;
    std::atomic<int> writers{0};
    for (int i = 0; i < 300; ++i) {
      if (i % 3 == 0) {
        rt.spawn(add(numbers, i, writers));
      } else {
        rt.spawn(look(numbers, writers));
      }
    }
    rt.run();
    EXPECT_EQ((*numbers.try_read())->size(), 100u);
  }
}

task<> impatient(guarded<int> number, bool& gave_up) {
  try {
    static_cast<void>(co_await number.write().timeout(1ms));
  } catch (const timed_out&) {
    gave_up = true;
  }
}

TEST(guarded, a_wait_may_have_a_limit) {
  runtime rt({.workers = 1});
  guarded<int> number(0);
  auto inside = number.try_read();
  bool gave_up = false;
  rt.spawn(impatient(number, gave_up));
  rt.run();
  EXPECT_TRUE(gave_up);
  inside.reset();
  EXPECT_TRUE(number.try_write());
}

TEST(guarded, threads_share_it_too) {
  guarded<std::map<int, int>> counts;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&counts, t] {
      for (int i = 0; i < 500; ++i) {
        if (i % 4 == 0) {
          ++(*counts.write().get())[t];
        } else {
          const auto inside = counts.read().get();
          ASSERT_LE(inside->size(), 4u);
        }
      }
    });
  }
  for (auto& thread : all) thread.join();
  for (const auto& [thread, count] : **counts.try_read()) EXPECT_EQ(count, 125) << thread;
}

TEST(guarded, what_a_context_has_is_promoted_or_persisted_by_assignment) {
  guarded<std::string> name;
  guarded<std::map<std::string, int>> counts;
  guarded<persisted<std::pmr::string>> page, word;
  owned_context work = make_context();
  {
    auto text = work->make<std::pmr::string>(long_text);
    auto tree = work->make<std::pmr::map<std::pmr::string, int>>();
    (*tree)[std::pmr::string(long_text, work.get())] = 3;
    auto large = work->make<std::pmr::string>(100'000, 'x');
    *name.try_write() = text;
    *counts.try_write() = tree;
    *page.try_write() = large;
    *word.try_write() = text;
  }
  EXPECT_NE(owner_of((*page.try_read())->get()), nullptr);
  EXPECT_EQ(owner_of((*word.try_read())->get()), nullptr) << "a little thing is copied";
  work.release();
  EXPECT_EQ(**name.try_read(), long_text);
  EXPECT_EQ((*counts.try_read())->at(long_text), 3);
  EXPECT_EQ((**page.try_read())->size(), 100'000u);
  EXPECT_EQ(***word.try_read(), long_text);
}

struct hidden {
  const char* text = nullptr;
};

TEST(guarded, a_pointer_into_a_context_is_found_in_checked_builds) {
  if (!contexts::checked) GTEST_SKIP() << "needs a checked build: not a checked build";
  guarded<hidden> name;
  owned_context work = make_context({.name = "request"});
  auto text = work->make<std::pmr::string>(long_text);
  {
    auto inside = *name.try_write();
    inside->text = text->c_str();
    try {
      inside.release();
      FAIL();
    } catch (const foreign_context_error& found) {
      const std::string said = found.what();
      EXPECT_NE(said.find("guarded<troupe::"), std::string::npos) << said;
      EXPECT_NE(said.find("in no context"), std::string::npos) << said;
      EXPECT_NE(said.find("(request)"), std::string::npos) << said;
    }
  }
  EXPECT_THROW(static_cast<void>(name.try_read()), foreign_context_error)
      << "those who come next are told, too";
  EXPECT_THROW(name.read().get(), foreign_context_error);
  (*name.try_write())->text = "fixed";
  EXPECT_EQ((*name.try_read())->text, std::string("fixed"));
}

TEST(guarded, an_access_that_was_released_is_of_no_use_in_checked_builds) {
  if (!contexts::checked) GTEST_SKIP() << "needs a checked build: not a checked build";
  guarded<int> number(1);
  auto inside = *number.try_write();
  auto moved = std::move(inside);
  EXPECT_THROW(*inside = 2, unguarded_error);
  moved.release();
  EXPECT_THROW(*moved = 2, unguarded_error);
}

}  // namespace
}  // namespace troupe
