// Parents with very many children: the cost of a child does not depend on their number.
#include <algorithm>
#include <ctime>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

// Of all processors: a machine that is busy with other things adds nothing to it.
std::chrono::nanoseconds time_used() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

using namespace std::chrono_literals;

class supervised_crowds : public conformance {};

struct node {};

// The children end in any order, and then their parent ends: the remaining children end with it.
TEST_P(supervised_crowds, children_leave_in_any_order) {
  for (const int step : {1, 7, 49}) {
    runtime rt(options());
    auto top = rt.spawn<node>();
    std::vector<ref<node>> all;
    std::vector<future<ended>> ends;
    for (int i = 0; i < 50; ++i) {
      all.push_back(rt.spawn<node>({.parent = top}));
      ends.push_back(all.back().watch());
    }
    rt.run();
    for (int i = 0; i < 40; ++i) {
      all[static_cast<std::size_t>(i * step % 50)].stop();
      if (i % 8 == 0) rt.run();
      if (i == 20)
        all.push_back(rt.spawn<node>({.parent = top})), ends.push_back(all.back().watch());
    }
    rt.run();
    EXPECT_EQ(std::count_if(ends.begin(), ends.end(), [](const auto& one) { return one.ready(); }),
              40);
    top.stop();
    rt.run();
    for (auto& one : ends) EXPECT_EQ(one.get().reason, ended::why::stopped);
  }
}

TEST_P(supervised_crowds, the_end_of_a_child_takes_as_long_among_many) {
  if (slow) GTEST_SKIP() << "needs an unsanitized build: a bound of time";
  constexpr int batches = 150, each = 1'000;
  runtime rt(options());
  auto top = rt.spawn<node>();
  std::vector<ref<node>> children;
  for (int batch = 0; batch < batches; ++batch) {
    for (int i = 0; i < each; ++i) children.push_back(rt.spawn<node>({.parent = top}));
    rt.run();
  }
  const auto begin = time_used();
  while (!children.empty()) children.pop_back();  // the youngest first
  rt.run();
  EXPECT_LT(time_used() - begin, 2s)
      << "about 0.1 s; it was 4 s when each was looked for among all";
}

struct mother {
  std::vector<ref<node>> children;
  void bear(int count) {
    for (int i = 0; i < count; ++i) children.push_back(spawn<node>({.parent = self(this)}));
  }
};

TEST_P(supervised_crowds, many_join_at_once) {
  constexpr int many = fewer(200'000, 20);
  runtime rt(options());
  const auto begin = time_used();
  const auto top = rt.spawn<node>();
  std::vector<ref<node>> children;
  for (int i = 0; i < many; ++i) children.push_back(rt.spawn<node>({.parent = top}));
  rt.run();
  EXPECT_LT(time_used() - begin, 20s)
      << "below 1 s; it was a minute when each walked along those before it";
  const auto of = rt.spawn<mother>();
  of.tell<&mother::bear>(many);
  rt.run();
  EXPECT_LT(time_used() - begin, 40s) << "the same, in a handler of the parent";
  future<ended> end = children.back().watch();
  top.stop();
  rt.run();
  EXPECT_EQ(end.get().reason, ended::why::stopped);
}

// Some actors have ended before. The runtime's end destroys the others, parents and children in any
// order.
TEST_P(supervised_crowds, a_runtime_ends_with_families) {
  std::vector<ref<node>> kept;
  {
    runtime rt(options());
    auto top = rt.spawn<node>();
    for (int i = 0; i < 300; ++i) {
      const spawn_options chosen{.parent = i < 10 ? top : kept[static_cast<std::size_t>(i) / 3]};
      kept.push_back(i % 5 == 0 ? rt.spawn<node>(pinned("p", chosen)) : rt.spawn<node>(chosen));
    }
    rt.run();
    for (std::size_t i = 0; i < kept.size(); i += 3) kept[i] = {};
    for (std::size_t i = 100; i < kept.size(); i += 7) {
      if (i % 3 != 0) kept[i].stop();
    }
  }
  kept.clear();
}

TROUPE_TEST_EACH(supervised_crowds, each_policy);

}  // namespace
}  // namespace troupe::test
