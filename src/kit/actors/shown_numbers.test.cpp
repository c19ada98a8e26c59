#include "troupe/kit/actors/shown_numbers.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "observe/numbers/registry.hpp"
#include "troupe/base/error.hpp"
#include "troupe/kit/actors/topic.hpp"
#include "troupe/kit/cache.hpp"
#include "troupe/kit/pool.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {
namespace {

// The rows of the table with that prefix.
std::vector<observe::table_row> shown(const std::string& prefix) {
  observe::number_tables all;
  observe::collect_instruments(all);
  for (const observe::number_rows& shown : all.all())
    if (shown.prefix == prefix) return shown.rows;
  return {};
}

TEST(shown_numbers, show_what_has_a_name) {
  const pool<int> numbers({}, [] { return 1; });
  const cache<int, int> squares({}, [](const int& n) { return n * n; });
  const circuit_breaker guards;
  {
    const shown_numbers of_pool("numbers", numbers), of_cache("squares", squares),
        of_breaker("guards", guards);
    for (const auto& [prefix, name] : {std::pair{"troupe_pool", "numbers"},
                                       {"troupe_cache", "squares"},
                                       {"troupe_circuit", "guards"}}) {
      const auto rows = shown(prefix);
      ASSERT_EQ(rows.size(), 1u) << prefix;
      EXPECT_EQ(rows[0].labels, std::vector<std::string>{name});
      EXPECT_EQ(std::get<std::uint64_t>(rows[0].values[0]), 0u);
    }
  }
  EXPECT_TRUE(shown("troupe_pool").empty());
}

TEST(shown_numbers, of_a_pool_have_the_times_of_waits) {
  const pool<int> numbers({.max = 1}, [] { return 1; });
  const shown_numbers shown_pool("waited_for", numbers);
  runtime rt;
  rt.spawn([](runtime& home, pool<int> lending) -> task<> {
    const auto held = co_await lending.borrow();
    home.spawn(
        [](pool<int> from) -> task<> { const auto later = co_await from.borrow(); }(lending));
    while (lending.counts().waiting == 0) co_await sleep_for(std::chrono::milliseconds(1));
    co_await sleep_for(std::chrono::milliseconds(30));
  }(rt, numbers));
  rt.run();
  const auto waits = std::get<observe::distribution>(shown("troupe_pool").at(0).values.back());
  EXPECT_EQ(waits.count(), 2u);
  EXPECT_EQ(waits.counts[0], 1u) << "the first did not wait";
  EXPECT_GE(waits.sum, 0.025);
}

TEST(shown_numbers, a_name_is_given_once) {
  const pool<int> numbers({}, [] { return 1; });
  std::optional<shown_numbers> first;
  first.emplace("numbers", numbers);
  EXPECT_THROW(shown_numbers("numbers", numbers), usage_error);
  const shown_numbers other("others", numbers);
  EXPECT_EQ(shown("troupe_pool").size(), 2u);
  first.reset();
  const shown_numbers again("numbers", numbers);
  EXPECT_EQ(shown("troupe_pool").size(), 2u);
}

}  // namespace
}  // namespace troupe
