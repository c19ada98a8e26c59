#include "observe_page/answer_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "troupe/runtime/runtime.hpp"

namespace troupe::observe_page {
namespace {

TEST(page_answers, ask_once_for_many_readers_that_come_together) {
  std::atomic<int> asked{0}, at_once{0}, most_at_once{0};
  const auto cache = std::make_shared<answer_cache>([&](const std::string& question) {
    const int now = ++at_once;
    int most = most_at_once;
    while (most < now && !most_at_once.compare_exchange_weak(most, now)) {
    }
    const std::string text = question + std::to_string(++asked);
    --at_once;
    return text;
  });
  runtime rt;
  std::atomic<int> same{0};
  for (int i = 0; i < 100; ++i) {
    rt.spawn([&, i]() -> task<> {
      const bool first = i % 2 == 0;
      task<std::shared_ptr<const std::string>> asking = answer_cache::to(cache, first ? "a" : "b");
      const auto text = co_await std::move(asking);
      same += text->starts_with(first ? "a" : "b") ? 1 : 0;
    });
  }
  rt.run();
  EXPECT_EQ(same, 100);
  EXPECT_EQ(most_at_once, 1);
  EXPECT_LT(asked, 20);  // 2, unless the machine takes a second for the readers
}

TEST(page_answers, keep_no_refusal_and_no_failure) {
  int asked = 0;
  const auto cache = std::make_shared<answer_cache>([&](const std::string&) -> std::string {
    if (++asked == 1) return "{\"error\":\"not that\"}";
    if (asked == 2) throw no_answer("gone");
    return "{}";
  });
  runtime rt;
  std::vector<std::string> got;
  rt.spawn([&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      try {
        task<std::shared_ptr<const std::string>> asking = answer_cache::to(cache, "a");
        got.push_back(*co_await std::move(asking));
      } catch (const no_answer& why) {
        got.emplace_back(why.what());
      }
    }
  });
  rt.run();
  EXPECT_EQ(got, (std::vector<std::string>{"{\"error\":\"not that\"}", "gone", "{}"}));
}

TEST(page_answers, keep_a_bounded_number_of_questions) {
  const auto cache =
      std::make_shared<answer_cache>([](const std::string& question) { return question; });
  runtime rt;
  int right = 0;
  rt.spawn([&]() -> task<> {
    for (int i = 0; i < 500; ++i) {
      const std::string question = "actor 0 " + std::to_string(i);
      task<std::shared_ptr<const std::string>> asking = answer_cache::to(cache, question);
      right += *co_await std::move(asking) == question ? 1 : 0;
    }
  });
  rt.run();
  EXPECT_EQ(right, 500);
}

}  // namespace
}  // namespace troupe::observe_page
