// generator<T>: an input range whose body runs only while the next value is asked for.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using streams::elements_of;

static_assert(std::ranges::input_range<generator<int>>);
static_assert(std::ranges::view<generator<std::string>>);
static_assert(
    std::is_same_v<std::ranges::range_value_t<generator<const std::string&>>, std::string>);

generator<int> up_to(int end) {
  counted here;
  for (int i = 0; i < end; ++i) co_yield i;
}
generator<std::string> words() {
  counted here;
  std::string kept = "a word that is too long for the string itself";
  co_yield kept;
  co_yield kept;
  co_yield std::move(kept);
  co_yield std::string(40, 'b');
}
generator<const std::string&> references(const std::vector<std::string>& all) {
  for (const std::string& one : all) co_yield one;
}
generator<std::unique_ptr<int>> owned() {
  for (int i = 0; i < 3; ++i) co_yield std::make_unique<int>(i);
}
generator<int> failing(int at) {
  counted here;
  for (int i = 0;; ++i) {
    if (i == at) throw std::runtime_error("at " + std::to_string(i));
    co_yield i;
  }
}

TEST(generators, give_what_is_asked_for) {
  {
    int ran_to = 0;
    auto body = [&ran_to]() -> generator<int> {
      for (;; ++ran_to) co_yield ran_to;
    };
    auto all = body();
    EXPECT_EQ(ran_to, 0);
    auto at = all.begin();
    ++at, ++at;
    EXPECT_EQ(*at, 2);
    EXPECT_EQ(ran_to, 2);
  }
  int sum = 0;
  for (int one : up_to(1000)) sum += one;
  EXPECT_EQ(sum, 499'500);
  for (int one : up_to(0)) ADD_FAILURE() << one;
  for (int one : generator<int>()) ADD_FAILURE() << one;
  EXPECT_EQ(live.load(), 0);
}

TEST(generators, are_ranges) {
  std::vector<int> found;
  for (int one : up_to(100) | std::views::filter([](int n) { return n % 10 == 0; }) |
                     std::views::transform([](int n) { return n / 10; }) | std::views::take(4))
    found.push_back(one);
  EXPECT_EQ(found, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(std::ranges::count_if(up_to(10), [](int n) { return n < 3; }), 3);
  EXPECT_EQ(live.load(), 0);
}

TEST(generators, copy_what_they_keep_and_move_what_they_give) {
  std::vector<std::string> found;
  for (std::string&& one : words()) found.push_back(std::move(one));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], found[2]);
  EXPECT_EQ(found[1], found[2]);
  EXPECT_EQ(found[3], std::string(40, 'b'));
  int sum = 0;
  for (auto&& one : owned()) sum += *one;
  EXPECT_EQ(sum, 3);
  const std::vector<std::string> all{"a", "b"};
  const std::string* at = all.data();
  for (const std::string& one : references(all)) EXPECT_EQ(&one, at++);
}

TEST(generators, are_dropped_at_any_time) {
  { auto never_begun = up_to(10); }
  {
    auto all = up_to(10);
    auto at = all.begin();
    ++at;
  }
  {
    auto all = up_to(10);
    auto other = std::move(all);
    EXPECT_EQ(*other.begin(), 0);
    other = up_to(2);
  }
  EXPECT_EQ(live.load(), 0);
}

TEST(generators, throw_what_their_bodies_throw) {
  auto all = failing(2);
  auto at = all.begin();
  ++at;
  EXPECT_THROW(++at, std::runtime_error);
  EXPECT_EQ(at, all.end());
  auto at_once = failing(0);
  EXPECT_THROW(static_cast<void>(at_once.begin()), std::runtime_error);
  EXPECT_EQ(live.load(), 0);
}

struct tree {
  std::unique_ptr<tree> left, right;
  int value;
};
std::unique_ptr<tree> grow(int from, int to) {
  if (from == to) return nullptr;
  const int middle = (from + to) / 2;
  return std::make_unique<tree>(tree{grow(from, middle), grow(middle + 1, to), middle});
}
generator<const int&> walk(const tree* of) {
  counted here;
  if (of == nullptr) co_return;
  co_yield elements_of(walk(of->left.get()));
  co_yield of->value;
  co_yield elements_of(walk(of->right.get()));
}

TEST(generators, call_themselves) {
  const auto all = grow(0, 1000);
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  std::vector<int> found;
  for (int one : walk(all.get())) found.push_back(one);
  EXPECT_EQ(found, expected);
  {
    auto part = walk(all.get());
    EXPECT_EQ(*part.begin(), 0);
  }
  EXPECT_EQ(live.load(), 0);
}

generator<int> chain(int n) {
  counted here;
  co_yield n;
  if (n > 0) co_yield elements_of(chain(n - 1));
}
generator<int> mixed() {
  std::vector some{1, 2};
  co_yield elements_of(std::move(some));
  const std::vector more{3, 4};
  co_yield elements_of(more);
  auto named = up_to(2);
  co_yield elements_of(named);
  bool failed = false;
  try {
    co_yield elements_of(failing(1));
  } catch (const std::runtime_error& e) {
    failed = true;
  }
  if (failed) co_yield 100;
  co_yield elements_of(failing(0));
}

TEST(generators, pass_the_elements_of_others_on) {
  int count = 0;
  for (int one : chain(fewer(20'000, 20))) count += one >= 0 ? 1 : 0;
  EXPECT_EQ(count, fewer(20'000, 20) + 1);
  std::vector<int> found;
  try {
    for (int one : mixed()) found.push_back(one);
    ADD_FAILURE();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "at 0");
  }
  EXPECT_EQ(found, (std::vector{1, 2, 3, 4, 0, 1, 0, 100}));
  EXPECT_EQ(live.load(), 0);
}

generator<int> empty_ones(int count) {
  for (int i = 0; i < count; ++i) co_yield elements_of(up_to(0));
  const std::vector<int> none;
  for (int i = 0; i < count; ++i) co_yield elements_of(none);
  co_yield 7;
}

// Without optimization a resumption within another one needs stack, a loop does not.
TEST(generators, that_give_nothing_need_no_stack) {
  int sum = 0;
  for (int one : empty_ones(fewer(200'000, 20))) sum += one;
  EXPECT_EQ(sum, 7);
}

TEST(generators, that_lie_deep_are_dropped_without_stack) {
  const int depth = fewer(200'000, 20);
  {
    auto all = chain(depth);
    auto at = all.begin();
    for (int i = 0; i < depth; ++i) ++at;
    EXPECT_EQ(*at, 0);
    EXPECT_EQ(live.load(), depth + 1);
  }
  EXPECT_EQ(live.load(), 0);
}

}  // namespace
}  // namespace troupe::test
