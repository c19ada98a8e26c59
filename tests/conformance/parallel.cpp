// The parallel algorithms: what std's come to, on any number of workers, with any grain; errors; who may call them.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"
#include "support/on_pool.hpp"

namespace troupe::test {
namespace {

class parallel_algorithms : public conformance {};

constexpr std::size_t sizes[] = {0, 1, 2, 255, 256, 257, 10'000};

TEST_P(parallel_algorithms, for_each_element_and_each_number_once) {
  runtime rt(options());
  for (const std::size_t size : sizes) {
    std::vector<int> calls(size);
    parallel_for(calls, [](int& one) { ++one; }).get();
    on_pool(rt, parallel_for(std::span(calls), [](int& one) { ++one; }, {.grain = 7}));
    parallel_for(std::size_t{0}, size, [&](std::size_t i) { ++calls[i]; }).get();
    parallel_for(0, static_cast<int>(size), [&](int i) { ++calls[static_cast<std::size_t>(i)]; }, {.grain = size + 100}).get();
    EXPECT_TRUE(std::ranges::all_of(calls, [](int n) { return n == 4; }));
  }
  parallel_for(5, -5, [](int) { FAIL(); }).get();
  std::atomic<long> sum{0};
  parallel_for(-100, 101, [&](int i) { sum += i + 1; }).get();
  EXPECT_EQ(sum.load(), 201);
}

TEST_P(parallel_algorithms, a_body_that_throws_ends_the_loop) {
  runtime rt(options());
  std::atomic<int> calls{0};
  const auto fails = [&, held = counted()](int i) {
    static_cast<void>(held);
    ++calls;
    if (i == 5) throw std::runtime_error("the fifth");
  };
  EXPECT_THROW(parallel_for(0, 1'000'000, fails, {.grain = 10}).get(), std::runtime_error);
  EXPECT_THROW(on_pool(rt, parallel_for(0, 1'000'000, fails, {.grain = 10})), std::runtime_error);
  EXPECT_LT(calls.load(), 2'000'000);
}

TEST_P(parallel_algorithms, reduce_in_an_order_that_the_range_alone_decides) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> any(-1e6, 1e6);
  std::vector<double> numbers(fewer(20'000));
  for (double& one : numbers) one = any(random);
  const auto square = [](double one) { return one * one; };
  const double alone = parallel_reduce(numbers, 0.5, std::plus(), square).get();  // without a runtime
  runtime rt(options());
  for (int i = 0; i < 5; ++i) {
    const double here = parallel_reduce(numbers, 0.5, std::plus(), square).get();
    EXPECT_EQ(std::memcmp(&here, &alone, sizeof(double)), 0);
    const double there = on_pool(rt, parallel_reduce(numbers, 0.5, std::plus(), square));
    EXPECT_EQ(std::memcmp(&there, &alone, sizeof(double)), 0);
  }
  // Associative, not commutative.
  std::vector<std::string> letters;
  for (int i = 0; i < 500; ++i) letters.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  const std::string text = std::accumulate(letters.begin(), letters.end(), std::string(">"));
  EXPECT_EQ(parallel_reduce(letters, std::string(">"), std::plus(), std::identity(), {.grain = 3}).get(), text);
  EXPECT_EQ(parallel_reduce(std::vector<int>().empty() ? std::span<int>() : std::span<int>(), 9).get(), 9);
}

TEST_P(parallel_algorithms, scan_as_the_serial_one) {
  runtime rt(options());
  for (const std::size_t size : sizes) {
    std::vector<std::uint64_t> numbers(size), expected(size), elsewhere(size);
    std::iota(numbers.begin(), numbers.end(), 1u);
    std::inclusive_scan(numbers.begin(), numbers.end(), expected.begin());
    parallel_scan(numbers, elsewhere.begin(), std::plus(), {.grain = 3}).get();
    EXPECT_EQ(elsewhere, expected);
    on_pool(rt, parallel_scan(numbers, numbers.begin()));  // in place
    EXPECT_EQ(numbers, expected);
  }
}

TEST_P(parallel_algorithms, sort_as_the_serial_one) {
  runtime rt(options());
  std::mt19937_64 random(GetParam().seed);
  for (const std::uint64_t different : {1u, 2u, 50u, 1'000'000u}) {
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(fewer(20'000)));
    for (auto& one : numbers) one = random() % different;
    auto expected = numbers;
    std::ranges::sort(expected);
    parallel_sort(numbers, std::ranges::less(), {.grain = 10}).get();
    EXPECT_EQ(numbers, expected);
    on_pool(rt, parallel_sort(numbers, std::greater(), {.grain = 100}));
    std::ranges::reverse(expected);
    EXPECT_EQ(numbers, expected);
  }
  for (const std::size_t size : sizes) {
    std::vector<std::unique_ptr<int>> owned;
    for (std::size_t i = 0; i < size; ++i) owned.push_back(std::make_unique<int>(static_cast<int>(random() % 1000)));
    const auto by_value = [](const auto& a, const auto& b) { return *a < *b; };
    parallel_sort(owned, by_value, {.grain = 9}).get();
    EXPECT_TRUE(std::ranges::is_sorted(owned, by_value));
  }
}

TEST_P(parallel_algorithms, that_throw_while_sorting_leave_valid_elements) {
  runtime rt(options());
  std::vector<int> numbers(5'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::shuffle(numbers, std::mt19937(3));
  std::atomic<int> left{20'000};
  const auto fails = [&](int a, int b) {
    if (--left < 0) throw std::runtime_error("no order");
    return a < b;
  };
  EXPECT_THROW(parallel_sort(numbers, fails, {.grain = 50}).get(), std::runtime_error);
  for (const int one : numbers) ASSERT_TRUE(one >= 0 && one < 5'000) << "as std::sort, which may have it twice";
}

TEST_P(parallel_algorithms, nest_in_works) {
  runtime rt(options());
  auto both = [](std::vector<long>& numbers) -> work<long> {
    const auto doubles = [](long& one) { one *= 2; };
    co_await parallel_for(numbers, doubles);
    auto [unit, sum] = co_await fork(parallel_sort(numbers), parallel_reduce(std::views::iota(0L, 100L), 0L));
    static_cast<void>(unit);
    co_return sum + numbers.front();
  };
  std::vector<long> numbers(1000);
  std::iota(numbers.rbegin(), numbers.rend(), 7);
  EXPECT_EQ(both(numbers).get(), 4950 + 14);
  EXPECT_EQ(on_pool(rt, both(numbers)), 4950 + 28);
}

TEST_P(parallel_algorithms, a_grain_larger_than_all_is_one_part) {
  runtime rt(options());
  std::vector<int> numbers(1'000, 1);
  for (const std::size_t grain : {SIZE_MAX, SIZE_MAX - 998, std::size_t{1'000}, std::size_t{999}}) {
    std::atomic<int> called{0};
    parallel_for(numbers, [&](int) { ++called; }, {.grain = grain}).get();
    EXPECT_EQ(called.load(), 1'000);
    EXPECT_EQ(parallel_reduce(numbers, 0, std::plus<>(), std::identity(), {.grain = grain}).get(), 1'000);
  }
}

TEST_P(parallel_algorithms, a_work_that_was_moved_from_is_refused) {
  runtime rt(options());
  auto one = []() -> work<int> { co_return 1; };
  work<int> first = one();
  work<int> second = std::move(first);
  EXPECT_THROW(std::move(first).get(), usage_error);
  EXPECT_EQ(std::move(second).get(), 1);
  EXPECT_THROW(std::move(second).get(), usage_error);
}

}  // namespace

TROUPE_TEST_EACH(parallel_algorithms, all_settings);

}  // namespace troupe::test
