// The parallel algorithms have the same results as those of std, on any number of workers and with
// any grain. Also errors, and the threads that may call them.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "conformance/jobs/on_pool.hpp"
#include "support/conformance.hpp"
#include "support/counted.hpp"

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
    parallel_for(0, static_cast<int>(size), [&](int i) { ++calls[static_cast<std::size_t>(i)]; },
                 {.grain = size + 100})
        .get();
    EXPECT_TRUE(std::ranges::all_of(calls, [](int n) { return n == 4; }));
  }
  parallel_for(5, -5, [](int) { FAIL(); }).get();
  std::atomic<long> sum{0};
  parallel_for(-100, 101, [&](int i) { sum += i + 1; }).get();
  EXPECT_EQ(sum.load(), 201);
}

TEST_P(parallel_algorithms, move_functions_in) {
  runtime rt(options());
  std::vector<int> numbers(10, 1);
  auto body = [two = std::make_unique<int>(2)](int& one) { one *= *two; };
  parallel_for(numbers, std::move(body), {.grain = 3}).get();
  auto triple = [three = std::make_unique<int>(3)](int one) { return one * *three; };
  auto add = [none = std::make_unique<int>(0)](int one, int other) { return one + other + *none; };
  EXPECT_EQ(parallel_reduce(numbers, 0, std::move(add), std::move(triple), {.grain = 3}).get(), 60);
  auto sum = [none = std::make_unique<int>(0)](int one, int other) { return one + other + *none; };
  std::vector<int> sums(10);
  parallel_scan(numbers, sums.begin(), std::move(sum), {.grain = 3}).get();
  EXPECT_EQ(sums.back(), 20);
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
  // This call runs without a runtime.
  const double alone = parallel_reduce(numbers, 0.5, std::plus(), square).get();
  runtime rt(options());
  for (int i = 0; i < 5; ++i) {
    const double here = parallel_reduce(numbers, 0.5, std::plus(), square).get();
    EXPECT_EQ(std::memcmp(&here, &alone, sizeof(double)), 0);
    const double there = on_pool(rt, parallel_reduce(numbers, 0.5, std::plus(), square));
    EXPECT_EQ(std::memcmp(&there, &alone, sizeof(double)), 0);
  }
  // String concatenation is associative, but not commutative.
  std::vector<std::string> letters;
  for (int i = 0; i < 500; ++i) letters.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  const std::string text = std::accumulate(letters.begin(), letters.end(), std::string(">"));
  EXPECT_EQ(
      parallel_reduce(letters, std::string(">"), std::plus(), std::identity(), {.grain = 3}).get(),
      text);
  EXPECT_EQ(
      parallel_reduce(std::vector<int>().empty() ? std::span<int>() : std::span<int>(), 9).get(),
      9);
}

// A text that counts its copies.
struct copied {
  std::string text;
  std::atomic<int>* copies;
  copied(std::string text, std::atomic<int>& copies) : text(std::move(text)), copies(&copies) {}
  copied(const copied& other) : text(other.text), copies(other.copies) { ++*copies; }
  copied(copied&&) = default;
  copied& operator=(copied&&) = default;
};

TEST_P(parallel_algorithms, reduce_without_copies_of_what_elements_come_to) {
  runtime rt(options());
  std::atomic<int> copies{0};
  const auto letter = [&](int i) {
    return copied(std::string(1, static_cast<char>('a' + i % 26)), copies);
  };
  const auto join = [](copied one, copied other) {
    one.text += other.text;
    return one;
  };
  const std::vector<int> numbers = {0, 1, 2, 3, 4, 5, 6};
  for (const std::size_t grain : {1u, 2u, 3u, 100u}) {
    EXPECT_EQ(
        parallel_reduce(numbers, copied(">", copies), join, letter, {.grain = grain}).get().text,
        ">abcdefg");
    EXPECT_EQ(
        on_pool(rt, parallel_reduce(numbers, copied(">", copies), join, letter, {.grain = grain}))
            .text,
        ">abcdefg");
  }
  EXPECT_EQ(copies.load(), 0);
  // The values need not be copyable, either.
  const auto box = [](int i) { return std::make_unique<int>(i); };
  const auto add = [](std::unique_ptr<int> one, std::unique_ptr<int> other) {
    *one += *other;
    return one;
  };
  EXPECT_EQ(*parallel_reduce(numbers, box(3), add, box, {.grain = 2}).get(), 24);
  EXPECT_EQ(*on_pool(rt, parallel_reduce(std::span<const int>(), box(3), add, box)), 3);
}

TEST_P(parallel_algorithms, scan_as_the_serial_one) {
  runtime rt(options());
  for (const std::size_t size : sizes) {
    std::vector<std::uint64_t> numbers(size), expected(size), elsewhere(size);
    std::iota(numbers.begin(), numbers.end(), 1u);
    std::inclusive_scan(numbers.begin(), numbers.end(), expected.begin());
    parallel_scan(numbers, elsewhere.begin(), std::plus(), {.grain = 3}).get();
    EXPECT_EQ(elsewhere, expected);
    on_pool(rt, parallel_scan(numbers, numbers.begin()));  // writes over its input
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
    for (std::size_t i = 0; i < size; ++i)
      owned.push_back(std::make_unique<int>(static_cast<int>(random() % 1000)));
    const auto by_value = [](const auto& a, const auto& b) { return *a < *b; };
    parallel_sort(owned, by_value, {.grain = 9}).get();
    EXPECT_TRUE(std::ranges::is_sorted(owned, by_value));
  }
}

// Such comparisons are mistakes. The algorithm must still end, and give the same elements in some
// order.
TEST_P(parallel_algorithms, sort_by_comparisons_that_contradict_each_other) {
  runtime rt(options());
  std::mt19937 random(9);
  for (const std::size_t size : {2u, 10u, 25u, 400u, 20'000u}) {
    std::vector<double> numbers(size + 2);
    for (double& one : numbers)
      one = random() % 3 == 0 ? std::numeric_limits<double>::quiet_NaN()
                              : static_cast<double>(random() % 50);
    // A sort that reads past an end would move these in first.
    numbers.front() = numbers.back() = -1;
    const std::span<double> all(numbers.begin() + 1, size);
    const auto count = [&] {
      return std::pair(std::ranges::count_if(all, [](double one) { return one != one; }),
                       std::ranges::count(all, 7.0));
    };
    const auto before = count();
    std::atomic<unsigned> asked{0};
    for (const std::size_t grain : {0u, 9u, 100u}) {
      parallel_sort(all, std::less(), {.grain = grain}).get();
      parallel_sort(all, std::less_equal(), {.grain = grain}).get();
      parallel_sort(all, [](double, double) { return true; }, {.grain = grain}).get();
      parallel_sort(all, [](double, double) { return false; }, {.grain = grain}).get();
      parallel_sort(all, [&](double, double) { return ++asked * 2'654'435'761u >> 31 != 0; },
                    {.grain = grain})
          .get();
      ASSERT_EQ(count(), before);
      ASSERT_TRUE(numbers.front() == -1 && numbers.back() == -1);
    }
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
  for (const int one : numbers)
    ASSERT_TRUE(one >= 0 && one < 5'000) << "as std::sort, which may have it twice";
}

TEST_P(parallel_algorithms, nest_in_works) {
  runtime rt(options());
  auto both = [](std::vector<long>& numbers) -> work<long> {
    const auto doubles = [](long& one) { one *= 2; };
    co_await parallel_for(numbers, doubles);
    auto [unit, sum] =
        co_await fork(parallel_sort(numbers), parallel_reduce(std::views::iota(0L, 100L), 0L));
    static_cast<void>(unit);
    co_return sum + numbers.front();
  };
  std::vector<long> numbers(1000);
  std::iota(numbers.rbegin(), numbers.rend(), 7);
  EXPECT_EQ(both(numbers).get(), 4950 + 14);
  EXPECT_EQ(on_pool(rt, both(numbers)), 4950 + 28);
}

TEST_P(parallel_algorithms, take_intervals_of_any_ends) {
  runtime rt(options());
  // To call the body for all numbers would take too long, so the first call of a part throws.
  constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const auto first_only = [](int i) {
    EXPECT_TRUE(i == least || i == 0);
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(parallel_for(least, most, first_only, {.grain = std::size_t{1} << 31}).get(),
               std::runtime_error);
  // The ends of an interval may differ in sign: their mathematical values count, not converted
  // ones.
  const auto none = [](auto) { FAIL(); };
  parallel_for(5u, -5, none).get();
  parallel_for(-5, -6L, none).get();
  parallel_for(std::size_t{0}, -1, none).get();
  shared_for(5u, -5, none);
  EXPECT_EQ(shared_reduce(0u, -1, 7u), 7u);
  std::atomic<long> sum{0};
  const auto add = [&](auto i) { sum += static_cast<long>(i); };
  parallel_for(1, 5u, add).get();
  parallel_for(-2, 5L, add).get();
  parallel_for(-2L, 2u, add).get();
  parallel_for('a', 'c', add).get();
  shared_for(1, std::size_t{3}, add);
  EXPECT_EQ(sum.load(), 10 + 7 - 2 + 195 + 3);
  EXPECT_THROW(parallel_for(-5, 5u, none).get(), usage_error);
  EXPECT_THROW(shared_for(-5, 5u, none), usage_error);
  EXPECT_THROW(shared_reduce(-5, 5u, 7u), usage_error);
}

TEST_P(parallel_algorithms, a_grain_larger_than_all_is_one_part) {
  runtime rt(options());
  std::vector<int> numbers(1'000, 1);
  for (const std::size_t grain : {SIZE_MAX, SIZE_MAX - 998, std::size_t{1'000}, std::size_t{999}}) {
    std::atomic<int> called{0};
    parallel_for(numbers, [&](int) { ++called; }, {.grain = grain}).get();
    EXPECT_EQ(called.load(), 1'000);
    EXPECT_EQ(parallel_reduce(numbers, 0, std::plus<>(), std::identity(), {.grain = grain}).get(),
              1'000);
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
