#include "observe/history/history.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace troupe::observe {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr double bounds[] = {0.001, 0.01, 0.1};

table_row row_of(std::string name, number_value value) {
  return {{"0", std::move(name)}, {std::move(value)}};
}

// A table whose one number is of this kind.
number_tables moment_of(number_kind kind, std::vector<table_row> rows) {
  number_tables all;
  all.add_table({"shop",
                 {"runtime", "name"},
                 {{"sold", "shop_sold", kind, number_unit::one, ""}},
                 std::move(rows)});
  return all;
}

using values_by_name = std::map<std::string, std::vector<float>>;
values_by_name values_of(const history& kept, const history::window& window) {
  values_by_name all;
  kept.for_each(window, "",
                [&](const history::row_labels& where, std::string_view number,
                    const std::vector<float>& values) {
                  EXPECT_EQ(where.prefix, "shop");
                  EXPECT_EQ(
                      std::vector<std::string>(where.label_names.begin(), where.label_names.end()),
                      std::vector<std::string>{"name"});
                  all[where.labels[0] + " " + std::string(number)] = values;
                });
  return all;
}
values_by_name newest(const history& kept, std::size_t count) {
  return values_of(kept, kept.find(INT64_MAX, count));
}

TEST(history, keeps_a_counter_as_its_rate) {
  history kept;
  std::uint64_t sold = 0;
  std::int64_t now = 0;
  for (const std::int64_t seconds : {1, 1, 2, 1}) {
    now += seconds * second;
    kept.add(moment_of(number_kind::counter, {row_of("a", sold += 10)}), now);
  }
  EXPECT_EQ(newest(kept, 4), (values_by_name{{"a sold", {0, 10, 5, 10}}}));
  kept.add(moment_of(number_kind::counter, {row_of("a", std::uint64_t{3})}), now + second);
  EXPECT_EQ(newest(kept, 1), values_by_name{}) << "a sum that begins anew has no negative rate";
}

TEST(history, keeps_a_gauge_as_its_value_and_0_while_its_thing_is_away) {
  history kept;
  std::int64_t now = 0;
  for (const int sold : {7, 0, -2})
    kept.add(moment_of(number_kind::gauge, {row_of("a", std::int64_t{sold})}), now += second);
  kept.add(number_tables(), now += second);
  kept.add(moment_of(number_kind::gauge, {row_of("a", 0.5), row_of("b", 9.0)}), now += second);
  EXPECT_EQ(newest(kept, 5),
            (values_by_name{{"a sold", {7, 0, -2, 0, 0.5}}, {"b sold", {0, 0, 0, 0, 9}}}));
}

TEST(history, keeps_a_histogram_as_its_rate_and_the_bound_of_its_new_values) {
  history kept;
  const auto add = [&](std::int64_t at, std::vector<std::uint64_t> counts) {
    kept.add(moment_of(number_kind::histogram,
                       {row_of("a", distribution{bounds, std::move(counts), 0})}),
             at * second);
  };
  add(1, {0, 0, 0, 0});
  add(2, {100, 0, 0, 0});
  add(3, {100, 0, 4, 0});
  add(4, {100, 0, 4, 0});
  const values_by_name seen = newest(kept, 3);
  EXPECT_EQ(seen.at("a sold"), (std::vector<float>{100, 4, 0}));
  EXPECT_EQ(seen.at("a sold_p99"), (std::vector<float>{0.001f, 0.1f, 0}));
}

// A second runtime of a process begins to look when the process has counted for long.
TEST(history, has_no_rate_of_the_first_look_at_a_table) {
  const std::uint64_t sold = 1'000'000;
  const struct {
    number_kind kind;
    number_value before, now, later;
    values_by_name rates;  // of three looks
  } rows[] = {
      {number_kind::counter, sold, sold + 3, sold + 3, {{"a sold", {0, 3, 0}}}},
      {number_kind::counter, 7.5, 8.0, 8.0, {{"a sold", {0, 0.5f, 0}}}},
      {number_kind::histogram,
       distribution{bounds, {0, 0, 0, sold}, 0},
       distribution{bounds, {2, 0, 0, sold}, 0},
       distribution{bounds, {2, 0, 0, sold}, 0},
       {{"a sold", {0, 2, 0}}, {"a sold_p99", {0, 0.001f, 0}}}},
      {number_kind::gauge, 5.0, 6.0, 7.0, {{"a sold", {5, 6, 7}}}},
  };
  for (const auto& row : rows) {
    history kept;
    std::int64_t now = 0;
    kept.add(number_tables(), now += second);  // the table comes later
    for (const number_value& value : {row.before, row.now, row.later})
      kept.add(moment_of(row.kind, {row_of("a", value)}), now += second);
    EXPECT_EQ(newest(kept, 3), row.rates) << static_cast<int>(row.kind);
  }
}

TEST(history, has_no_rate_of_the_first_look_at_tables_of_one_name) {
  history kept;
  number_tables all;
  const table_number number{"sold", "shop_sold", number_kind::counter, number_unit::one, ""};
  all.add_table({"shop", {"name"}, {number}, {{{"a"}, {std::uint64_t{5}}}}});
  all.add_table({"shop", {"name"}, {number}, {{{"b"}, {std::uint64_t{6}}}}});
  kept.add(all, second);
  EXPECT_EQ(newest(kept, 1), values_by_name{});
}

TEST(history, counts_a_row_that_comes_to_a_known_table_from_0_on) {
  history kept;
  kept.add(moment_of(number_kind::counter, {}), second);
  kept.add(moment_of(number_kind::counter, {row_of("a", std::uint64_t{9})}), 2 * second);
  EXPECT_EQ(newest(kept, 2), (values_by_name{{"a sold", {0, 9}}}));
}

TEST(history, keeps_300_looks_and_360_tens) {
  history kept;
  constexpr std::uint64_t looks = 5'000;
  std::uint64_t sold = 0;
  for (std::uint64_t look = 1; look <= looks; ++look) {
    // As many a second as the number of the look.
    kept.add(moment_of(number_kind::counter, {row_of("a", sold += look)}),
             static_cast<std::int64_t>(look) * second);
  }
  const std::vector<float> fine = newest(kept, series::fine_steps).at("a sold");
  ASSERT_EQ(fine.size(), series::fine_steps);
  for (std::size_t i = 0; i < fine.size(); ++i)
    ASSERT_EQ(fine[i], static_cast<float>(looks - series::fine_steps + 1 + i)) << i;
  const history::window all = kept.find(INT64_MAX, series::coarse_steps * series::looks_in_ten);
  EXPECT_TRUE(all.is_of_tens);
  const std::vector<float> tens = values_of(kept, all).at("a sold");
  ASSERT_EQ(tens.size(), series::coarse_steps);
  for (std::size_t i = 0; i < tens.size(); ++i) {
    const auto last = static_cast<float>(looks - 10 * (series::coarse_steps - 1 - i));
    ASSERT_NEAR(tens[i], last - 4.5f, 0.1f) << i;
    ASSERT_EQ(all.times_ns[i], static_cast<std::int64_t>(last) * second) << i;
  }
}

TEST(history, finds_a_moment_in_looks_and_behind_these_in_tens) {
  history kept;
  for (int look = 1; look <= 1'000; ++look)
    kept.add(moment_of(number_kind::gauge, {row_of("a", std::int64_t{look})}), look * second);
  const auto at = [&](std::int64_t seconds) {
    const history::window found = kept.find(seconds * second + 1, 1);
    return std::pair(found.is_of_tens, values_of(kept, found)["a sold"]);
  };
  EXPECT_EQ(at(1'000), std::pair(false, std::vector<float>{1'000}));
  EXPECT_EQ(at(800), std::pair(false, std::vector<float>{800}));
  EXPECT_EQ(at(100), std::pair(true, std::vector<float>{100}));
  EXPECT_EQ(at(109), std::pair(true, std::vector<float>{100})) << "the ten that was over then";
  EXPECT_EQ(at(5), std::pair(false, std::vector<float>{})) << "nothing was kept so early";
}

TEST(history, keeps_tables_of_one_prefix_apart) {
  history kept;
  number_tables all;
  const table_number number{"sold", "shop_sold", number_kind::gauge, number_unit::one, ""};
  all.add_table({"shop", {"runtime"}, {number}, {{{"0"}, {std::int64_t{1}}}}});
  all.add_table({"shop", {"runtime", "kind"}, {number}, {{{"0", "a"}, {std::int64_t{2}}}}});
  kept.add(all, second);
  std::map<std::size_t, float> seen;  // by the number of labels
  kept.for_each(
      kept.find(INT64_MAX, 1), "shop",
      [&](const history::row_labels& where, std::string_view, const std::vector<float>& values) {
        EXPECT_EQ(where.label_names.size(), where.labels.size());
        seen[where.labels.size()] = values.front();
      });
  EXPECT_EQ(seen, (std::map<std::size_t, float>{{0, 1.0f}, {1, 2.0f}}));
  kept.for_each(kept.find(INT64_MAX, 1), "other",
                [](const auto&...) { FAIL() << "a table of another prefix"; });
}

TEST(history, of_a_short_time_is_as_long_as_that) {
  history kept;
  EXPECT_TRUE(kept.find(INT64_MAX, 300).times_ns.empty());
  for (int look = 1; look <= 25; ++look)
    kept.add(moment_of(number_kind::gauge, {row_of("a", std::int64_t{look})}), look * second);
  EXPECT_EQ(newest(kept, 300).at("a sold").size(), 25u);
}

TEST(history, keeps_at_most_2000_series_and_says_how_many_it_left_out) {
  history kept;
  std::vector<table_row> rows;
  for (std::size_t i = 0; i < history::series_max + 3; ++i)
    rows.push_back(row_of(std::to_string(i), std::int64_t{1}));
  kept.add(moment_of(number_kind::gauge, rows), second);
  EXPECT_EQ(kept.left_out(), 3u);
  EXPECT_EQ(newest(kept, 1).size(), history::series_max);
  rows.resize(history::series_max);
  kept.add(moment_of(number_kind::gauge, rows), 2 * second);
  EXPECT_EQ(kept.left_out(), 0u);
}

TEST(history, lets_a_series_go_that_was_0_for_an_hour) {
  history kept;
  std::vector<table_row> rows;
  for (std::size_t i = 0; i < history::series_max; ++i)
    rows.push_back(row_of(std::to_string(i), std::int64_t{1}));
  std::int64_t now = second;
  kept.add(moment_of(number_kind::gauge, rows), now);
  for (int look = 0; look < 3'700; ++look) kept.add(number_tables(), now += second);
  kept.add(moment_of(number_kind::gauge, {row_of("new", std::int64_t{1})}), now += second);
  EXPECT_EQ(kept.left_out(), 0u);
  EXPECT_EQ(newest(kept, 1), (values_by_name{{"new sold", {1}}}));
}

}  // namespace
}  // namespace troupe::observe
