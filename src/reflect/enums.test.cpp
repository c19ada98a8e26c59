#include "troupe/reflect/enums.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace shop {
enum class state : std::uint8_t { fresh, paid = 3, sent, also_sent = 4, last = 127, beyond = 128 };
enum flags : int { none = 0, some = 2, negative = -1 };
struct outer {
  enum class inner : bool { no, yes };
};
}  // namespace shop
enum class top { here };

namespace troupe::reflect {
namespace {

TEST(reflect_enums, have_their_names) {
  static_assert(name_of(shop::state::paid) == "paid");
  EXPECT_EQ(name_of(shop::state::fresh), "fresh");
  EXPECT_EQ(name_of(shop::state::sent), "sent");
  EXPECT_EQ(name_of(shop::state::last), "last");
  EXPECT_EQ(name_of(shop::state::beyond), "");
  EXPECT_EQ(name_of(static_cast<shop::state>(1)), "");
  EXPECT_EQ(name_of(shop::some), "some");
  EXPECT_EQ(name_of(shop::negative), "");
  EXPECT_EQ(name_of(shop::outer::inner::yes), "yes");
  EXPECT_EQ(name_of(top::here), "here");
}

TEST(reflect_enums, are_found_by_name) {
  EXPECT_EQ(enumerator<shop::state>("paid"), shop::state::paid);
  EXPECT_EQ(enumerator<shop::outer::inner>("yes"), shop::outer::inner::yes);
  EXPECT_EQ(enumerator<shop::state>(""), std::nullopt);
  EXPECT_EQ(enumerator<shop::state>("Paid"), std::nullopt);
  EXPECT_EQ(enumerator<shop::state>("beyond"), std::nullopt);
}

enum { unfixed };
TEST(reflect_enums, without_a_fixed_type_are_not_read) {
  static_assert(!enumeration<decltype(unfixed)> && !enumeration<int> && enumeration<top>);
}

}  // namespace
}  // namespace troupe::reflect
