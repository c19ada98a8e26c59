// Four times as many parties on one object cost about four times the CPU time.
#include <algorithm>
#include <ranges>
#include <vector>

#include "support/conformance.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

struct Party {
  int sum = 0;
  void add(int n) { sum += n; }
};

class growth : public conformance {
 protected:
  // Squares would be 16 times as much. The best of several attempts counts, and the first one finds
  // caches cold.
  template <class Work>
  static void expect_in_line(int n, Work work) {
    const auto cost = [&work](int many) {
      const auto before = cpu_time_used();
      work(many);
      return cpu_time_used() - before;
    };
    static_cast<void>(cost(n));
    auto once = cost(n), four_times = cost(4 * n);
    for (int i = 0; i < 8 && four_times > 10 * once; ++i) {
      once = std::min(once, cost(n));
      four_times = std::min(four_times, cost(4 * n));
    }
    EXPECT_LE(four_times.count(), 10 * once.count()) << "microseconds";
  }
};

TEST_P(growth, subscribers_of_a_topic_come_and_end) {
  expect_in_line(2'500, [this](int n) {
    runtime rt(options());
    const topic<int> numbers;
    std::vector<ref<Party>> all;
    for (int i = 0; i < n; ++i) {
      all.push_back(rt.spawn<Party>());
      ASSERT_TRUE(numbers.subscribe<&Party::add>(all.back()));
    }
    EXPECT_EQ(numbers.publish(1), static_cast<std::size_t>(n));
    for (int i = 0; i < n / 2; ++i) all[static_cast<std::size_t>(i)].stop();
    for (int i = n / 2; i < n; ++i) {
      EXPECT_TRUE(numbers.unsubscribe<&Party::add>(all[static_cast<std::size_t>(i)]));
    }
    rt.run();
    EXPECT_EQ(numbers.counts().subscribers, 0u);
  });
}

TEST_P(growth, members_of_a_group_come_and_end) {
  expect_in_line(8'000, [this](int n) {
    runtime rt(options());
    const actor_group<Party> group;
    std::vector<ref<Party>> all;
    for (int i = 0; i < n; ++i) {
      all.push_back(rt.spawn<Party>());
      ASSERT_TRUE(group.add(all.back()));
    }
    for (int i = 0; i < n / 2; ++i) all[static_cast<std::size_t>(i)].stop();
    for (int i = n - 1; i >= n / 2; --i) {
      EXPECT_TRUE(group.remove(all[static_cast<std::size_t>(i)]));
    }
    rt.run();
    EXPECT_EQ(group.size(), 0u);
  });
}

TEST_P(growth, results_of_a_wide_pipe_are_given) {
  expect_in_line(1'500, [this](int n) {
    runtime rt(options());
    const auto give = [](int one) -> task<int> {
      co_await yield();
      co_return one;
    };
    auto count =
        rt.spawn(std::views::iota(0, n) | streams::map(give) |
                 streams::buffered_unordered(static_cast<std::size_t>(n)) | streams::count());
    rt.run();
    EXPECT_EQ(count.get(), static_cast<std::size_t>(n));
  });
}

TROUPE_TEST_EACH(growth, each_policy);

}  // namespace
}  // namespace troupe::test
