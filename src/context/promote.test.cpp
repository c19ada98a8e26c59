// A promoted object keeps nothing in the memory of its context.
#include "troupe/context/promote.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "troupe/context/snapshot.hpp"

namespace troupe {
namespace {

using text = std::pmr::string;
constexpr const char* long_text = "a text that is longer than a string holds by itself";

struct point {
  int x, y;
};
struct opaque {
  const char* text;
};
// Has an allocator, and so a deep copy.
struct person {
  using allocator_type = std::pmr::polymorphic_allocator<>;
  explicit person(const allocator_type& allocator = {}) : name(allocator) {}
  person(const person& other, const allocator_type& allocator) : name(other.name, allocator) {}
  text name;
};

}  // namespace

template <>
inline constexpr bool promoted_by_copy<point> = true;

namespace {

static_assert(promotable<int> && promotable<std::string> && promotable<text> && promotable<point> &&
              promotable<person>);
static_assert(promotable<std::pmr::map<text, std::pmr::vector<person>>> &&
              promotable<std::optional<text>>);
static_assert(promotable<std::variant<std::monostate, text, int>> &&
              promotable<std::pair<const int, std::array<text, 2>>>);
static_assert(!promotable<int*> && !promotable<std::string_view> && !promotable<opaque> &&
              !promotable<std::vector<int*>>);
static_assert(!promotable<std::pmr::map<text, opaque>> && !promotable<std::unique_ptr<int>>);

TEST(promote, a_copy_has_nothing_in_the_context) {
  owned_context work = make_context();
  auto people = work->make<std::pmr::map<text, std::pmr::vector<person>>>();
  (*people)[text(long_text, work.get())].emplace_back().name = long_text;
  const auto kept = promote(people);
  for (const auto& [name, all] : kept) {
    EXPECT_EQ(owner_of(name.data()), nullptr);
    EXPECT_EQ(owner_of(all.data()), nullptr);
    EXPECT_EQ(owner_of(all.front().name.data()), nullptr);
  }
  work.release();
  EXPECT_EQ(kept.at(text(long_text)).front().name, long_text);
}

TEST(promote, into_another_context) {
  owned_context work = make_context(), other = make_context();
  auto words = work->make<std::pmr::vector<text>>(3, long_text);
  auto copy = other->make<std::pmr::vector<text>>(promote(words, other.get()));
  work.release();
  EXPECT_EQ(owner_of(copy->back().data()), other.get());
  EXPECT_EQ(copy->back(), long_text);
}

TEST(promote, to_what_may_be_sent) {
  owned_context work = make_context();
  auto words = work->make<std::pmr::map<text, std::pmr::vector<text>>>();
  (*words)[text(long_text, work.get())].emplace_back(long_text);
  auto numbers = work->make<std::pmr::set<int>>(std::initializer_list<int>{1, 2, 3});
  const auto kept = promote_to<std::unordered_map<std::string, std::vector<std::string>>>(words);
  const auto sum = promote_to<std::vector<long>>(numbers);
  work.release();
  EXPECT_EQ(kept.at(long_text).front(), long_text);
  EXPECT_EQ(sum, (std::vector<long>{1, 2, 3}));
}

TEST(auto_escape, little_things_are_copied_and_large_ones_persisted) {
  const context_counters before = count_contexts();
  owned_context work = make_context();
  snapshot here(*work);
  persisted<int> number = auto_escape(work->make<int>(42));
  persisted<text> name = auto_escape(work->make<text>(long_text));
  work->rollback(here);
  EXPECT_EQ(count_contexts().rollbacks_kept, before.rollbacks_kept);
  EXPECT_EQ(owner_of(name.get()), nullptr);
  persisted<text> book = auto_escape(work->make<text>(promoted_bytes_max, 'x'));
  persisted<opaque> unknown = auto_escape(work->make<opaque>("unknown"));
  EXPECT_EQ(owner_of(book.get()), work.get());
  EXPECT_EQ(owner_of(unknown.get()), work.get());
  work->rollback(here);
  EXPECT_EQ(count_contexts().rollbacks_kept - before.rollbacks_kept, 1);
  EXPECT_EQ(*number + static_cast<int>(book->size()), 42 + 2048);
  EXPECT_EQ(*name, long_text);
}

TEST(auto_escape, at_the_limit_and_one_past) {
  owned_context work = make_context();
  auto few = work->make<text>(1000, 'x');
  EXPECT_EQ(owner_of(auto_escape(few, sizeof(text) + 1000).get()), nullptr);
  EXPECT_EQ(owner_of(auto_escape(few, sizeof(text) + 999).get()), work.get());
  auto many = work->make<std::pmr::vector<text>>(10, text(100, 'y', work.get()));
  const std::size_t bytes = sizeof *many + 10 * (sizeof(text) + 100);
  EXPECT_EQ(owner_of(auto_escape(many, bytes).get()), nullptr);
  EXPECT_EQ(owner_of(auto_escape(many, bytes - 1).get()), work.get());
}

TEST(auto_escape, no_large_context_is_kept_for_a_number) {
  const std::int64_t before = count_contexts().bytes;
  owned_context work = make_context();
  static_cast<void>(work->allocate(std::size_t{100} << 20));
  persisted<int> answer = auto_escape(work->make<int>(42));
  work.release();
  EXPECT_EQ(count_contexts().bytes, before);
  EXPECT_EQ(*answer, 42);
}

}  // namespace
}  // namespace troupe
