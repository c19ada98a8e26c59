// The checker of histories itself: it accepts what one order explains, and nothing else.
#include "support/linearizable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using linearizable::counter_model;
using linearizable::history;
using linearizable::never;
using linearizable::operation;
using linearizable::register_model;

using register_operation = operation<register_model>;
using counter_operation = operation<counter_model>;

register_operation read(std::int64_t called, std::int64_t returned, std::int64_t value) {
  return {register_model::read(), called, returned, value};
}
register_operation write(std::int64_t called, std::int64_t returned, std::int64_t value) {
  return {register_model::write(value), called, returned, 0};
}
register_operation lost_write(std::int64_t called, std::int64_t value) {
  return {register_model::write(value), called, never, std::nullopt};
}
register_operation replace(std::int64_t called, std::int64_t returned, std::int64_t expected,
                           std::int64_t value, bool has_replaced) {
  return {register_model::replace(expected, value), called, returned, has_replaced ? 1 : 0};
}
counter_operation add(std::int64_t called, std::int64_t returned, std::int64_t added,
                      std::int64_t sum) {
  return {added, called, returned, sum};
}
counter_operation lost_add(std::int64_t called, std::int64_t added) {
  return {added, called, never, std::nullopt};
}

template <class Model>
std::string what_is_wrong(const std::vector<operation<Model>>& all) {
  history<Model> of;
  for (const auto& one : all) of.add("key", one);
  return of.what_is_wrong();
}
std::string wrong_register(const std::vector<register_operation>& all) {
  return what_is_wrong<register_model>(all);
}
std::string wrong_counter(const std::vector<counter_operation>& all) {
  return what_is_wrong<counter_model>(all);
}

TEST(linearizable_histories, good_ones_are_accepted) {
  EXPECT_EQ(wrong_register({}), "");
  EXPECT_EQ(wrong_register({read(1, 2, 0), write(3, 4, 7), read(5, 6, 7)}), "");
  // What is concurrent may come in each order, and those who read agree on it.
  EXPECT_EQ(wrong_register({write(1, 9, 7), write(1, 9, 8), read(2, 3, 8), read(4, 5, 7)}), "");
  EXPECT_EQ(wrong_register({write(1, 9, 7), read(2, 3, 7), read(4, 5, 7)}), "");
  EXPECT_EQ(wrong_register({write(1, 9, 7), read(2, 3, 0), read(2, 5, 7)}), "");
  EXPECT_EQ(wrong_register({replace(1, 5, 0, 1, true), replace(1, 5, 0, 2, false),
                            replace(6, 7, 1, 3, true), read(8, 9, 3)}),
            "");
  EXPECT_EQ(wrong_register({write(1, 2, 7), {register_model::add(2), 3, 6, 9}, read(4, 5, 9)}), "");
  EXPECT_EQ(wrong_counter({add(1, 9, 1, 2), add(1, 9, 1, 1), add(10, 11, 0, 2)}), "");
}

TEST(linearizable_histories, what_has_no_known_end_takes_effect_at_any_time_or_never) {
  EXPECT_EQ(wrong_register({lost_write(1, 7), read(5, 6, 0)}), "");
  EXPECT_EQ(wrong_register({lost_write(1, 7), read(5, 6, 7)}), "");
  EXPECT_EQ(wrong_register({lost_write(1, 7), read(5, 6, 0), read(7, 8, 7)}), "");
  EXPECT_EQ(wrong_register({lost_write(1, 7), write(2, 3, 8), read(5, 6, 8), read(7, 8, 7)}), "");
  EXPECT_EQ(wrong_counter({lost_add(1, 1), lost_add(2, 1), lost_add(2, 5), add(3, 4, 1, 7)}), "");
  // And at one time alone.
  EXPECT_NE(wrong_register({lost_write(1, 7), read(5, 6, 7), write(7, 8, 8), read(9, 10, 7)}), "");
  EXPECT_NE(wrong_register({read(5, 6, 7), lost_write(7, 7)}), "");
  EXPECT_NE(wrong_counter({lost_add(1, 1), lost_add(2, 1), add(3, 4, 1, 4)}), "");
  EXPECT_NE(wrong_counter({lost_add(1, 1), lost_add(6, 1), add(3, 4, 1, 3)}), "");
}

TEST(linearizable_histories, a_stale_read_is_found) {
  const std::string wrong = wrong_register({write(1, 2, 7), write(3, 4, 8), read(5, 6, 7)});
  EXPECT_NE(wrong.find("key: after 2 of 3 operations the state is 8"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("read (5 to 6: 7)"), std::string::npos) << wrong;
  // One has seen it, so nobody sees what was before.
  EXPECT_NE(wrong_register({write(1, 20, 7), read(2, 3, 7), read(4, 5, 0)}), "");
}

TEST(linearizable_histories, a_lost_update_is_found) {
  EXPECT_NE(wrong_counter({add(1, 2, 1, 1), add(3, 8, 1, 2), add(4, 9, 1, 2), add(10, 11, 0, 2)}),
            "");
  EXPECT_NE(wrong_counter({add(1, 2, 1, 1), add(3, 4, 0, 0)}), "");
  EXPECT_NE(wrong_register({replace(1, 9, 0, 1, true), replace(2, 8, 0, 2, true)}), "");
}

TEST(linearizable_histories, a_double_effect_is_found) {
  EXPECT_NE(wrong_counter({add(1, 2, 1, 1), add(3, 4, 0, 2)}), "");
  EXPECT_NE(wrong_counter({lost_add(1, 1), add(3, 4, 0, 2)}), "");
  EXPECT_NE(wrong_register({write(1, 2, 7), write(3, 4, 8), read(5, 6, 8), read(7, 8, 7)}), "");
}

TEST(linearizable_histories, a_read_from_the_future_is_found) {
  EXPECT_NE(wrong_register({read(1, 2, 7), write(3, 4, 7)}), "");
  EXPECT_NE(wrong_counter({add(1, 2, 1, 2), add(3, 4, 1, 2)}), "");
}

TEST(linearizable_histories, an_effect_of_what_did_not_run_is_found) {
  history<register_model> all;
  const auto refused = all.begin("a", register_model::write(7), 1);
  all.did_not_run(refused);
  const auto other = all.begin("b", register_model::read(), 2);
  all.end(other, 0, 3);
  const auto looks = all.begin("a", register_model::read(), 4);
  all.end(looks, 0, 5);
  EXPECT_EQ(all.what_is_wrong(), "");
  all.end(looks, 7, 5);
  EXPECT_NE(all.what_is_wrong(), "");
  EXPECT_EQ(all.size(), 3u);
}

TEST(linearizable_histories, a_search_without_an_end_says_that_it_was_given_up) {
  history<counter_model> all;
  for (int i = 0; i < 40; ++i) all.add("a", lost_add(1, std::int64_t{1} << i));
  all.add("a", add(2, 3, 1, -1));
  EXPECT_EQ(all.what_is_wrong(1'000), "a: undecided after 1000 steps; ");
}

// What the definition says, by trying all orders of all subsets.
template <class Model>
bool has_explanation(std::vector<operation<Model>> left, typename Model::state now) {
  const auto is_known = [](const auto& one) { return one.answer.has_value(); };
  if (std::ranges::none_of(left, is_known)) return true;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const operation<Model> next = left[i];
    const auto must_be_first = [&](const auto& one) { return one.returned < next.called; };
    if (std::ranges::any_of(left, must_be_first)) continue;
    typename Model::state then = now;
    const auto answer = Model::apply(then, next.what);
    if (next.answer && *next.answer != answer) continue;
    auto rest = left;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (has_explanation<Model>(std::move(rest), then)) return true;
  }
  return false;
}

TEST(linearizable_histories, it_says_what_the_definition_says) {
  std::mt19937_64 random(1);
  const auto below = [&random](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  int accepted = 0;
  const int rounds = fewer(4'000);
  for (int round = 0; round < rounds; ++round) {
    std::vector<register_operation> all;
    for (int i = 0; i < 6; ++i) {
      register_operation one;
      one.what = {static_cast<register_model::act>(below(4)), 1 + below(2), below(3)};
      one.called = below(12);
      one.returned = one.called + 1 + below(8);
      if (below(4) != 0) {
        const std::int64_t most[] = {3, 1, 2, 4};  // of answers, by the act
        one.answer = below(most[static_cast<int>(one.what.what)]);
      } else {
        one.returned = never;
      }
      all.push_back(one);
    }
    const bool expected = has_explanation<register_model>(all, 0);
    const std::string wrong = wrong_register(all);
    ASSERT_EQ(wrong.empty(), expected) << "round " << round << ": " << wrong;
    accepted += expected;
  }
  EXPECT_GT(accepted, rounds / 10);
  EXPECT_LT(accepted, rounds * 9 / 10);
}

// Which of those that nobody knows took effect is not tried in all ways.
TEST(linearizable_histories, many_operations_without_a_known_end_are_searched) {
  std::vector<register_operation> all;
  std::int64_t time = 1;
  for (std::int64_t i = 1; i <= 30; ++i, time += 10) {
    all.push_back(lost_write(time, 1'000 * i));
    all.push_back({register_model::add(1), time, never, std::nullopt});
    all.push_back(write(time + 1, time + 2, 7));
    all.push_back(read(time + 3, time + 4, i % 3 == 0 ? 1'000 * i : 7));
  }
  EXPECT_EQ(wrong_register(all), "");
  all.push_back(read(time, time + 1, 5));
  EXPECT_NE(wrong_register(all).find("after 60 of 61 operations"), std::string::npos)
      << wrong_register(all);
}

// Of clients that never disagree: operations take effect within their times, and one in 20 has no
// known end. `wrong_at`: that one answers with what was there before the last change.
void add_many(history<register_model>& all, int count, int wrong_at) {
  constexpr std::size_t keys = 300;
  struct value {
    std::int64_t now = 0, before = 0, time = 0;
  };
  std::mt19937_64 random(2);
  std::vector<value> values(keys);
  for (int i = 0; i < count; ++i) {
    const std::size_t key = random() % keys;
    value& its = values[key];
    its.time += 10;
    register_operation one;
    const auto act = random() % 3;
    if (act == 1) one.what = register_model::write(i + 1);
    if (act == 2) one.what = register_model::replace(random() % 2 == 0 ? its.now : -1, i + 1);
    const std::int64_t before = its.now;
    one.called = its.time - static_cast<std::int64_t>(random() % 40);
    one.returned = its.time + static_cast<std::int64_t>(random() % 40);
    const bool is_lost = random() % 20 == 0;
    if (!is_lost || random() % 2 == 0) one.answer = register_model::apply(its.now, one.what);
    if (its.now != before) its.before = before;
    if (is_lost) one.answer.reset(), one.returned = never;
    if (i >= wrong_at && act == 0 && !is_lost && its.before != its.now) {
      one.answer = its.before;
      one.called = one.returned = its.time += 1'000;
      wrong_at = count;
    }
    all.add("key " + std::to_string(key), one);
  }
}

TEST(linearizable_histories, many_operations_take_seconds) {
  const int count = fewer(100'000);
  history<register_model> good, bad;
  add_many(good, count, count);
  add_many(bad, count, count / 2);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(good.what_is_wrong(), "");
  const auto spent = std::chrono::steady_clock::now() - begun;
  const std::string wrong = bad.what_is_wrong();
  EXPECT_NE(wrong, "");
  EXPECT_EQ(wrong.find("undecided"), std::string::npos) << wrong;
  std::cout << count << " operations took "
            << std::chrono::duration_cast<std::chrono::milliseconds>(spent).count() << " ms\n";
}

}  // namespace
}  // namespace troupe::test
