#include "troupe/observe/numbers/instruments.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "observe/numbers/registry.hpp"
#include "troupe/base/error.hpp"

namespace troupe::observe {
namespace {

// The table of the number of that name, as it is shown; without rows if it is not.
number_rows shown(const std::string& metric) {
  number_tables all;
  collect_instruments(all);
  for (const number_rows& shown : all.all())
    if (shown.prefix == metric) return shown;
  return {};
}

TEST(instruments, a_counter_is_shown_while_it_lives) {
  {
    counter orders("test_orders", "Orders that were placed.");
    orders.add();
    orders.add(4);
    EXPECT_EQ(orders.value(), 5u);
    const number_rows table = shown("test_orders_total");
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(table.numbers[0].kind, number_kind::counter);
    EXPECT_EQ(table.numbers[0].help, "Orders that were placed.");
    EXPECT_EQ(std::get<std::uint64_t>(table.rows[0].values[0]), 5u);
  }
  EXPECT_TRUE(shown("test_orders_total").numbers.empty());
}

TEST(instruments, threads_lose_no_count) {
  counter hits("test_hits", "Hits.");
  histogram sizes("test_sizes_bytes", "Sizes.", {.bounds = {1, 10}});
  gauge open("test_open", "Open ones.");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        hits.add();
        sizes.record(5.0);
        open.add(n % 2 == 0 ? 1 : -1);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(hits.value(), 40'000u);
  EXPECT_EQ(sizes.count(), 40'000u);
  EXPECT_EQ(open.value(), 0);
  const number_rows table = shown("test_sizes_bytes");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.numbers[0].unit, number_unit::bytes);
  const auto& spread = std::get<distribution>(table.rows[0].values[0]);
  EXPECT_EQ(spread.counts, (std::vector<std::uint64_t>{0, 40'000, 0}));
  EXPECT_EQ(spread.sum, 200'000);
}

TEST(instruments, a_value_at_a_bound_is_within_it) {
  histogram sizes("test_bounds", "Sizes.", {.bounds = {1, 2}});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5}) sizes.record(value);
  const auto table = shown("test_bounds");
  EXPECT_EQ(std::get<distribution>(table.rows.at(0).values[0]).counts,
            (std::vector<std::uint64_t>{2, 2, 1}));
}

TEST(instruments, labels_make_series) {
  counter sold("test_sold", "Sold.", {.labels = {"kind", "land"}});
  sold.with({"book", "de"}).add(2);
  sold.with({"book", "at"}).add(3);
  sold.with({"book", "de"}).add();
  const number_rows table = shown("test_sold_total");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].labels, (std::vector<std::string>{"book", "at"}));
  EXPECT_EQ(std::get<std::uint64_t>(table.rows[0].values[0]), 3u);
  EXPECT_EQ(std::get<std::uint64_t>(table.rows[1].values[0]), 3u);
  EXPECT_THROW(sold.with({"book"}), usage_error);
}

// At the limit, and one past it.
TEST(instruments, too_many_series_are_counted_together) {
  counter visits("test_visits", "Visits.", {.labels = {"user"}, .series_max = 3});
  for (const char* const user : {"a", "b", "c"}) visits.with({user}).add();
  EXPECT_EQ(shown("test_visits_total").rows.size(), 3u);
  visits.with({"d"}).add();
  visits.with({"e"}).add();
  visits.with({"a"}).add();
  const number_rows table = shown("test_visits_total");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].labels.at(0), "(others)");
  EXPECT_EQ(std::get<std::uint64_t>(table.rows[0].values[0]), 2u);
  EXPECT_EQ(std::get<std::uint64_t>(table.rows[1].values[0]), 2u);
  const number_rows over = shown("troupe");
  ASSERT_EQ(over.rows.size(), 1u);
  EXPECT_EQ(over.rows[0].labels.at(0), "test_visits_total");
  EXPECT_EQ(std::get<std::uint64_t>(over.rows[0].values[0]), 2u);
}

TEST(instruments, one_name_is_one_number) {
  counter first("test_same", "Same."), second("test_same", "Same.");
  first.add();
  second.add();
  EXPECT_EQ(first.value(), 2u);
  EXPECT_THROW(counter("test_same", "Another one."), usage_error);
  EXPECT_THROW(counter("test_same", "Same.", {.labels = {"a"}}), usage_error);
  EXPECT_NO_THROW(gauge("test_same", "Same."));  // its metric has no "_total"
}

TEST(instruments, names_and_options_are_checked) {
  for (const char* const name : {"", "1a", "A", "a-b", "a b", "troupe_a", "process_a", "a_total",
                                 "a_sum", "a_count", "a_bucket", "\n"})
    EXPECT_THROW(counter(name, "Help."), usage_error) << name;
  EXPECT_THROW(counter("test_bad", ""), usage_error);
  for (const char* const label : {"", "le", "__a", "1", "a b"})
    EXPECT_THROW(counter("test_bad", "Help.", {.labels = {label}}), usage_error) << label;
  EXPECT_THROW(counter("test_bad", "Help.", {.labels = {"a", "a"}}), usage_error);
  EXPECT_THROW(counter("test_bad", "Help.", {.labels = {"a"}, .series_max = 0}), usage_error);
  EXPECT_THROW(counter("test_bad", "Help.", {.labels = std::vector<std::string>(9, "a")}),
               usage_error);
  for (const std::vector<double>& bounds :
       {std::vector<double>{1, 1}, {2, 1}, std::vector<double>(32, 1)})
    EXPECT_THROW(histogram("test_bad", "Help.", {.bounds = bounds}), usage_error);
}

}  // namespace
}  // namespace troupe::observe
