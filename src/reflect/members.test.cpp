#include "troupe/reflect/members.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::reflect {
namespace {

struct item {
  std::string name;
  int pieces = 1;
};
struct without_default {
  explicit without_default(int given) : value(given) {}
  int value;
};
struct order {
  int id;
  std::string who;
  std::vector<item> items;
  std::optional<double> price;
  item first;
  std::array<int, 3> numbers;
  int c_array[4];
  std::variant<int, std::string> either;
  std::unique_ptr<int> owned;
};
struct needs {
  int before;
  without_default inner;
  std::string after;
};
struct empty {};
class closed {
 public:
  int seen = 0;

 private:
  [[maybe_unused]] int hidden_ = 0;
};

static_assert(aggregate<order> && aggregate<empty> && aggregate<needs>);
static_assert(!aggregate<std::string> && !aggregate<std::array<int, 2>> && !aggregate<closed>);
static_assert(!aggregate<std::tuple<int>> && !aggregate<int> && !aggregate<without_default>);
static_assert(member_count<order> == 9);
static_assert(member_count<item> == 2);
static_assert(member_count<needs> == 3);
static_assert(member_count<empty> == 0);
static_assert(member_names<item> == std::array<std::string_view, 2>{"name", "pieces"});
static_assert(member_names<needs> == std::array<std::string_view, 3>{"before", "inner", "after"});

TEST(members, are_tied_in_their_order) {
  order placed{7, "Ada", {}, 2.5, {"pen", 3}, {1, 2, 3}, {4, 5, 6, 7}, 1, nullptr};
  const auto tied = tie_members(placed);
  static_assert(std::tuple_size_v<decltype(tied)> == 9);
  std::get<1>(tied) = "Grace";
  EXPECT_EQ(placed.who, "Grace");
  EXPECT_EQ(&std::get<6>(tied), &placed.c_array);
  EXPECT_EQ(std::get<4>(tied).pieces, 3);
  const order& fixed = placed;
  static_assert(std::is_same_v<std::tuple_element_t<0, decltype(tie_members(fixed))>, const int&>);
}

TEST(members, have_the_names_that_the_source_gives) {
  constexpr auto& names = member_names<order>;
  const std::vector<std::string_view> expected{"id",      "who",     "items",  "price", "first",
                                               "numbers", "c_array", "either", "owned"};
  EXPECT_EQ(std::vector<std::string_view>(names.begin(), names.end()), expected);
}

TEST(members, of_a_local_struct_have_names) {
  struct local {
    int a_;
    double b2;
  };
  local pair{1, 2};
  std::string all;
  for_each_member(pair, [&](std::string_view name, auto& value) {
    all += name;
    value += 1;
  });
  EXPECT_EQ(all, "a_b2");
  EXPECT_EQ(pair.a_, 2);
}

template <class T>
struct pair_of {
  T left, right;
};
TEST(members, of_a_template_have_names) {
  static_assert(member_names<pair_of<std::vector<std::string>>> ==
                std::array<std::string_view, 2>{"left", "right"});
  pair_of<int> pair{1, 2};
  int sum = 0;
  for_each_member(pair, [&](std::string_view, int value) { sum += value; });
  EXPECT_EQ(sum, 3);
}

struct largest {
  int m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
      m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32, m33, m34, m35, m36, m37, m38, m39,
      m40, m41, m42, m43, m44, m45, m46, m47, m48, m49, m50, m51, m52, m53, m54, m55, m56, m57, m58,
      m59, m60, m61, m62, m63;
};
TEST(members, may_be_64) {
  static_assert(member_count<largest> == 64);
  static_assert(member_names<largest>[63] == "m63");
  largest filled{};
  std::get<63>(tie_members(filled)) = 5;
  EXPECT_EQ(filled.m63, 5);
}

}  // namespace
}  // namespace troupe::reflect
