#include "troupe/reflect/enumerators.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <string>

namespace shop {
enum class far : std::uint32_t { first = 100'000, second };
enum class flags : std::uint64_t {
  none = 0,
  low = 256,
  high = std::uint64_t{1} << 40,
  both = low | high,
  top = std::uint64_t{1} << 63,
};
enum class edges : int { b = -513, c = -512, d = 2'047, e = 2'048, f = 2'049 };
enum class ends : int { least = INT_MIN, near_least = INT_MIN + 15, most = INT_MAX };
enum unfixed { minus = -5, plus = 300 };
enum class letter : char { a = 'a', comma = ',' };
enum class answer : bool { no, yes };
template <class T>
struct holder {
  enum class state : std::uint16_t { open, shut = 700 };
};
}  // namespace shop
namespace {
enum class unnamed : std::uint8_t { low = 1, high = 255 };
}  // namespace

template <>
inline constexpr auto troupe::reflect::listed_enumerators<shop::far> =
    std::array{shop::far::first, shop::far::second};

namespace troupe::reflect {
namespace {

template <class T>
std::string all() {
  std::string text;
  for (const named_value& each : all_enumerators<T>) {
    text += std::string(each.name) + '=' + std::to_string(static_cast<std::int64_t>(each.bits));
    text += ' ';
  }
  return text;
}

TEST(reflect_enumerators, are_found_with_their_values) {
  EXPECT_EQ(all<shop::far>(), "first=100000 second=100001 ");
  EXPECT_EQ(all<shop::flags>(),
            "none=0 low=256 high=1099511627776 both=1099511628032 top=-9223372036854775808 ");
  EXPECT_EQ(all<shop::edges>(), "c=-512 d=2047 e=2048 ");  // 2048 is a power of two
  EXPECT_EQ(all<shop::ends>(), "least=-2147483648 near_least=-2147483633 most=2147483647 ");
  EXPECT_EQ(all<shop::unfixed>(), "minus=-5 plus=300 ");
  EXPECT_EQ(all<shop::letter>(), "comma=44 a=97 ");
  EXPECT_EQ(all<shop::answer>(), "no=0 yes=1 ");
  EXPECT_EQ((all<shop::holder<std::pair<int, long>>::state>()), "open=0 shut=700 ");
  EXPECT_EQ(all<unnamed>(), "low=1 high=255 ");
  EXPECT_EQ(all<std::byte>(), "");
}

TEST(reflect_enumerators, tell_which_values_are_known) {
  EXPECT_TRUE(is_known(shop::far::second));
  EXPECT_FALSE(is_known(static_cast<shop::far>(100'002)));
  EXPECT_TRUE(is_known(shop::edges::c));
  EXPECT_FALSE(is_known(shop::edges::b));
  EXPECT_TRUE(is_known(shop::edges::e));
  EXPECT_FALSE(is_known(shop::edges::f));
  EXPECT_TRUE(is_known(shop::flags::both));
  EXPECT_FALSE(is_known(static_cast<shop::flags>((std::uint64_t{1} << 40) | 1)));
  EXPECT_TRUE(is_known(std::byte{77}));
}

}  // namespace
}  // namespace troupe::reflect
