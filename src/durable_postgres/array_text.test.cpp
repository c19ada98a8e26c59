#include "durable_postgres/array_text.hpp"

#include <gtest/gtest.h>

#include <array>

namespace troupe::durable {
namespace {

TEST(array_text, columns_are_arrays_of_postgres) {
  array_text column;
  EXPECT_EQ(column.take(), "{}");
  column.add(1);
  column.add(-2);
  EXPECT_EQ(column.take(), "{1,-2}");
  column.add_text("");
  column.add_text("a,b \"c\" {d}");
  column.add_text("\\");
  EXPECT_EQ(column.take(), R"({"","a,b \"c\" {d}","\\\\"})");
  column.add_bytes({});
  column.add_bytes(std::array{std::byte{0}, std::byte{0xa9}});
  EXPECT_EQ(column.take(), R"({"\\x","\\x00a9"})");
}

TEST(array_text, any_text_comes_back) {
  using namespace std::string_view_literals;
  EXPECT_EQ(stored_text("plain \u00e4\u20ac\U0001f600"), "plain \u00e4\u20ac\U0001f600");
  EXPECT_EQ(stored_text("\0a"sv), "\\x00a");
  EXPECT_EQ(stored_text("\\x00"), "\\\\x00");
  EXPECT_EQ(stored_text("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(stored_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(stored_text("\xc0\x80"), "\\xc0\\x80");
  EXPECT_EQ(stored_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  for (const std::string_view one :
       {""sv, "\0"sv, "\\"sv, "\\x41"sv, "\\\\x41"sv, "\xe2\x82"sv, "a\0\xff\\\xe2\x82\xac"sv})
    EXPECT_EQ(text_of_stored(stored_text(one)), one);
}

TEST(array_text, a_prefix_that_ends_within_a_character_has_two_places) {
  using namespace std::string_view_literals;
  using places = std::vector<std::string>;
  for (const std::string_view whole :
       {""sv, "a"sv, "\u00e4"sv, "\\"sv, "\xff"sv, "\x80"sv, "\u20ac"sv, "\U0001f600"sv, "\xc0"sv,
        "\xe0\x80"sv, "\xed\xa0"sv})
    EXPECT_EQ(places_of_prefix(whole), places{stored_text(whole)}) << whole;
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\xc3", "\xc3\x80"},
      {"\xe2", "\xe2\x80\x80"},
      {"\xe2\x82", "\xe2\x82\x80"},
      {"\xe0", "\xe0\xa0\x80"},
      {"\xed", "\xed\x80\x80"},
      {"\xf0", "\xf0\x90\x80\x80"},
      {"\xf4", "\xf4\x80\x80\x80"},
      {"\xf0\x9f", "\xf0\x9f\x80\x80"},
      {"\xf0\x9f\x98", "\xf0\x9f\x98\x80"}};
  for (const auto& [begun, smallest] : cases) {
    const std::string prefix = "\\" + std::string(begun);
    EXPECT_EQ(places_of_prefix(prefix),
              (places{stored_text(prefix), "\\\\" + std::string(smallest)}));
  }
}

}  // namespace
}  // namespace troupe::durable
