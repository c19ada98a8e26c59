#include "troupe/durable/codec.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <variant>

namespace troupe::durable {
namespace {

enum class color : std::uint8_t { red, blue };
struct empty {
  bool operator==(const empty&) const = default;
};
struct item {
  std::string name;
  int pieces = 0;
  bool operator==(const item&) const = default;
};
struct everything {
  bool flag;
  std::int16_t small;
  double price;
  color paint;
  std::chrono::milliseconds lasts;
  std::chrono::system_clock::time_point at;
  std::optional<item> maybe;
  std::variant<std::monostate, int, std::string> either;
  std::array<int, 2> two;
  std::pair<int, std::string> pair;
  std::vector<bool> flags;
  std::vector<empty> nothing;
  std::map<std::string, std::vector<item>> by_name;
  std::set<int> numbers;
  bool operator==(const everything&) const = default;
};

everything example() {
  return {true,
          -7,
          2.5,
          color::blue,
          std::chrono::milliseconds(12),
          std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000)),
          item{"pen", 3},
          "text",
          {1, 2},
          {5, "five"},
          {true, false, true},
          {{}, {}},
          {{"a", {{"ink", 1}}}, {"b", {}}},
          {3, 1}};
}

TEST(codecs, values_come_back) {
  const everything value = example();
  EXPECT_EQ(decode<everything>(encode(value)), value);
}

struct dates {
  std::chrono::year_month_day born;
  std::chrono::month_day feast;
  std::chrono::year_month expires;
  std::chrono::weekday free;
  std::chrono::local_seconds wakes;
  bool operator==(const dates&) const = default;
};

TEST(codecs, dates_come_back) {
  using namespace std::chrono;
  const dates value{year(-44) / March / 15, December / 24, year(2031) / July, Sunday,
                    local_seconds(seconds(-5))};
  EXPECT_EQ(decode<dates>(encode(value)), value);
  EXPECT_EQ(shape_of<dates>(),
            "{born:<year i2,month u1,day u1>,feast:<month u1,day u1>,expires:<year i2,month u1>,"
            "free:weekday u1,wakes:local time duration i8 1/1}");
}

TEST(codecs, the_shape_has_names_and_types) {
  EXPECT_EQ(shape_of<item>(), "{name:text,pieces:i4}");
  EXPECT_EQ((shape_of<std::map<int, std::optional<item>>>()), "[<i4,{name:text,pieces:i4}?>]");
  EXPECT_NE(fingerprint_of(shape_of<item>()), fingerprint_of(shape_of<everything>()));
  EXPECT_EQ(fingerprint_of(""), 14'695'981'039'346'656'037u);
}

TEST(codecs, bytes_that_end_early_or_late_are_refused) {
  std::vector<std::byte> bytes = encode(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(decode<everything>(std::span(bytes).first(size)), decode_error) << size;
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode<everything>(bytes), decode_error);
}

TEST(codecs, a_count_is_bounded_by_what_follows) {
  const std::vector<std::byte> bytes(4, std::byte{0xff});
  EXPECT_THROW(decode<std::vector<item>>(bytes), decode_error);
  EXPECT_THROW(decode<std::string>(bytes), decode_error);
}

TEST(codecs, damaged_bytes_give_a_value_or_an_error) {
  const std::vector<std::byte> whole = encode(example());
  std::minstd_rand random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = whole;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try {
      static_cast<void>(decode<everything>(bytes));
    } catch (const decode_error&) {
    }
  }
}

int fail_to_make() { throw std::runtime_error("it cannot be made"); }
struct never_made {
  std::string name;  // a type that is copied byte by byte would leave the value before
  int n = fail_to_make();
};

TEST(codecs, a_variant_without_a_value_is_the_error_of_who_stores_it) {
  std::variant<int, never_made> value;
  EXPECT_THROW(value.emplace<never_made>(), std::runtime_error);
  EXPECT_TRUE(value.valueless_by_exception());
  EXPECT_THROW(static_cast<void>(encode(value)), usage_error);
}

enum class weather : std::int8_t { unknown = -1, fine = 0, rain = 5, storm = 64 };
enum plain_enum { one_thing, other_thing };
enum class flags : std::uint64_t { none = 0, low = 256, high = std::uint64_t{1} << 40 };
namespace v1 {
struct circle {
  double radius;
};
}  // namespace v1
struct circleV2 {
  double radius;
};
struct square {
  double radius;
};

TEST(durable_codec, shapes_have_enumerators_and_names_of_alternatives) {
  EXPECT_EQ(shape_of<weather>(), "enum i1{unknown=-1,fine=0,rain=5,storm=64}");
  EXPECT_EQ(shape_of<plain_enum>(), "enum u4{one_thing=0,other_thing=1}");
  EXPECT_EQ(shape_of<flags>(), "enum u8{none=0,low=256,high=1099511627776}");
  using shapes = std::variant<std::monostate, v1::circle, square, std::string>;
  EXPECT_EQ(shape_of<shapes>(), "({}|circle{radius:f8}|square{radius:f8}|text)");
  EXPECT_EQ((shape_of<std::variant<circleV2, square>>()),
            (shape_of<std::variant<v1::circle, square>>()));
  EXPECT_EQ((parts::shape_text<std::variant<weather, square>>(parts::naming::none)),
            "(enum i1|{radius:f8})");
}

TEST(durable_codec, a_shape_reads_one_with_fewer_enumerators) {
  const auto reads = [](const char* now, const char* before) {
    return parts::reads_shape(now, before);
  };
  EXPECT_TRUE(reads("{a:i4}", "{a:i4}"));
  EXPECT_FALSE(reads("{a:i4}", "{a:i4,b:i4}"));
  EXPECT_FALSE(reads("{a:i4,b:i4}", "{a:i4}"));
  const char* const two = "[{c:enum i4{red=0,green=1},d:text}]";
  EXPECT_TRUE(reads(two, two));
  EXPECT_TRUE(reads("[{c:enum i4{red=0,green=1,blue=2},d:text}]", two));
  EXPECT_TRUE(reads("[{c:enum i4{none=-1,red=0,green=1},d:text}]", two));
  EXPECT_FALSE(reads("[{c:enum i4{red=0},d:text}]", two));
  EXPECT_FALSE(reads("[{c:enum i4{green=0,red=1},d:text}]", two));
  EXPECT_FALSE(reads("[{c:enum i4{red=0,greenish=1},d:text}]", two));
  EXPECT_FALSE(reads("[{c:enum u4{red=0,green=1},d:text}]", two));
  EXPECT_FALSE(reads("[{c:enum i4{red=0,green=1},d:i4}]", two));
  EXPECT_FALSE(reads("(a{}|b{})", "(b{}|a{})"));
  EXPECT_FALSE(reads("", two));
  EXPECT_FALSE(reads("enum i4", "enum i4{"));
}

}  // namespace
}  // namespace troupe::durable
