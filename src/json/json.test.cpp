#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/json/read.hpp"
#include "troupe/json/write.hpp"

namespace shop {

enum class colour { red, green, blue };
struct item {
  std::string name;
  int count = 1;
  double price;
  friend bool operator==(const item&, const item&) = default;
};
struct order {
  int id;
  std::string who;
  std::vector<item> items;
  std::optional<double> price;
  friend bool operator==(const order&, const order&) = default;
};
struct node {
  int class_;
  std::vector<node> children;
  std::unique_ptr<node> next;
};
struct circle {
  double radius;
};
struct square {
  double side;
};
struct nothing {};
struct money {
  explicit money(long is) : cents(is) {}
  money() = default;
  long cents = 0;
};

}  // namespace shop

template <>
struct troupe::json::as<shop::money> {
  using type = long;
  static shop::money from(long cents) {
    if (cents < 0) throw std::invalid_argument("an amount is needed");
    return shop::money(cents);
  }
  static long to(const shop::money& amount) { return amount.cents; }
};

namespace troupe::json {
namespace {

using namespace std::chrono_literals;

template <class T>
std::string why(std::string_view text, const read_options& how = {}) {
  try {
    static_cast<void>(read<T>(text, how));
  } catch (const json_error& e) {
    return e.what();
  }
  return "nothing";
}

template <class T>
void there_and_back(const T& from, std::string_view text) {
  EXPECT_EQ(write(from), text);
  EXPECT_EQ(read<T>(text), from);
}

TEST(json, structs) {
  const shop::order one{7, "Ada \"L\"", {{"tea", 2, 3.5}, {"cup", 1, 1e300}}, 12.25};
  there_and_back(one, R"({"id":7,"who":"Ada \"L\"","items":[{"name":"tea","count":2,"price":3.5},)"
                      R"({"name":"cup","count":1,"price":1e+300}],"price":12.25})");
  there_and_back(shop::order{0, "", {}, std::nullopt}, R"({"id":0,"who":"","items":[]})");
  EXPECT_EQ(read<shop::order>(R"( { "price" : null , "items":[], "x":{"id":[1]}, "who":"\u00e4",
                                    "id":1 } )"),
            (shop::order{1, "\xc3\xa4", {}, std::nullopt}));
  EXPECT_EQ(write(shop::nothing()), "{}");
  static_cast<void>(read<shop::nothing>("{\"a\":1}"));
}

// How a number is written does not matter, as long as it is whole.
TEST(json, whole_numbers_may_have_a_fraction_or_an_exponent) {
  EXPECT_EQ(read<int>("1.0"), 1);
  EXPECT_EQ(read<int>("1e2"), 100);
  EXPECT_EQ(read<int>("-2.50e1"), -25);
  EXPECT_EQ(read<int>("-0.0"), 0);
  EXPECT_EQ(read<unsigned>("-0.0"), 0u);
  EXPECT_EQ(read<std::uint8_t>("2.55E+2"), 255);
  EXPECT_EQ(read<std::int64_t>("9007199254740991.0"), 9'007'199'254'740'991);
  EXPECT_EQ(read<std::uint64_t>("9.007199254740991e15"), 9'007'199'254'740'991u);
  EXPECT_EQ(read<std::chrono::seconds>("3.0"), 3s);
  for (const char* text : {"1.5", "1e-1", "-0.5", "2147483648.0", "1e300", "\"1.0\""})
    EXPECT_EQ(why<int>(text), "a whole number from -2147483648 to 2147483647 is needed") << text;
  for (const char* text : {"-1.0", "256.0", "2.555e2"})
    EXPECT_EQ(why<std::uint8_t>(text), "a whole number from 0 to 255 is needed") << text;
  // Beyond 2^53 a double may be another number than the text.
  for (const char* text : {"9007199254740992.0", "9007199254740993.0", "1e18", "-1e18"})
    EXPECT_EQ(why<std::int64_t>(text).substr(0, 14), "a whole number") << text;
}

struct settings {
  int port = 8080;
  std::string host = "localhost";
  std::optional<int> workers = 3;
  shop::item first{"tea", 2, 3.5};
  std::vector<shop::item> more{};
  friend bool operator==(const settings&, const settings&) = default;
};

TEST(json, members_that_are_missing_may_keep_their_initializers) {
  read_options how;
  EXPECT_EQ(why<settings>("{}", how), "port: it is missing");
  how.keep_missing = true;
  EXPECT_EQ(read<settings>("{}", how), settings());
  settings wanted;
  wanted.port = 1;
  wanted.workers = std::nullopt;
  wanted.first.count = 7;
  wanted.more = {{"cup", 1, 0}};
  EXPECT_EQ(read<settings>(
                R"({"port":1,"workers":null,"first":{"count":7},"more":[{"name":"cup"}]})", how),
            wanted);
  EXPECT_EQ(why<settings>(R"({"port":null})", how),
            "port: a whole number from -2147483648 to 2147483647 is needed");
  EXPECT_EQ(why<settings>("[]", how), "an object is needed");
}

// One rule for all objects: a name that is there twice is refused.
TEST(json, names_that_are_there_twice) {
  EXPECT_EQ(why<shop::circle>(R"({"radius":1,"radius":1})"), "radius: it is there twice");
  EXPECT_EQ(why<shop::circle>(R"({"x":1,"radius":1,"y":2,"x":1})"), "x: it is there twice");
  EXPECT_EQ(why<shop::circle>(R"({"radius":1,"x":{"y":[0,{"a":1,"b":2,"a":1}]}})"),
            "x.y[1].a: it is there twice");
  EXPECT_EQ(why<shop::circle>(R"({"radius":1,"a":1,"\u0061":2})"), "a: it is there twice");
  EXPECT_EQ((why<std::map<std::string, int>>(R"({"a":1,"a":1})")), "a: it is there twice");
  using shape = std::variant<shop::circle, shop::square>;
  EXPECT_EQ(why<shape>(R"({"type":"circle","radius":1,"type":"circle"})"),
            "type: it is there twice");
  EXPECT_EQ(read<shop::circle>(R"({"x":{"a":1},"y":{"a":1},"radius":1})").radius, 1);
}

TEST(json, numbers_at_their_limits) {
  there_and_back(std::numeric_limits<std::int64_t>::min(), "-9223372036854775808");
  there_and_back(std::numeric_limits<std::uint64_t>::max(), "18446744073709551615");
  there_and_back(std::int8_t{-128}, "-128");
  there_and_back(std::uint8_t{255}, "255");
  there_and_back(0.1f, "0.1");
  there_and_back(0.1, "0.1");
  there_and_back(-0.0, "-0");
  EXPECT_EQ(read<double>("3"), 3.0);
  EXPECT_EQ(why<std::int8_t>("-129"), "a whole number from -128 to 127 is needed");
  EXPECT_EQ(why<std::uint8_t>("256"), "a whole number from 0 to 255 is needed");
  EXPECT_EQ(why<std::uint8_t>("-1"), "a whole number from 0 to 255 is needed");
  EXPECT_EQ(why<std::int64_t>("9223372036854775808"),
            "a whole number from -9223372036854775808 to 9223372036854775807 is needed");
  EXPECT_EQ(why<int>("\"1\"").substr(0, 14), "a whole number");
  EXPECT_NE(why<std::uint64_t>("18446744073709551616"), "nothing");
  EXPECT_EQ(why<float>("1e39"), "this number is too large");
  EXPECT_NE(why<double>("1e400"), "nothing");
  EXPECT_EQ(why<double>("true"), "a number is needed");
  EXPECT_THROW(write(std::numeric_limits<double>::infinity()), usage_error);
  EXPECT_THROW(write(std::numeric_limits<float>::quiet_NaN()), usage_error);
}

TEST(json, the_path_of_the_error) {
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":"","items":[{"name":"a","count":1,"price":1},
                                 {"name":"a","count":1,"price":"x"}]})"),
            "items[1].price: a number is needed");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":"","items":[{"name":"a","count":1}]})"),
            "items[0].price: it is missing");
  EXPECT_EQ(why<shop::order>("[]"), "an object is needed");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"id":2,"who":"","items":[]})"), "id: it is there twice");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":3,"items":[]})"), "who: a string is needed");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":"","items":{}})"), "items: an array is needed");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":"","items":[],"x":1})"), "nothing");
  EXPECT_EQ(why<shop::order>(R"({"id":1,"who":"","items":[],"x":1})", {.refuse_unknown = true}),
            "x: there is no such member");
  EXPECT_EQ(why<std::vector<std::vector<int>>>("[[1],[2,null]]").substr(0, 7), "[1][1]:");
}

TEST(json, enumerators_are_their_names) {
  there_and_back(shop::colour::green, "\"green\"");
  EXPECT_EQ(why<shop::colour>("\"yellow\""), R"(one of "red", "green", "blue" is needed)");
  EXPECT_EQ(why<shop::colour>("1"), R"(one of "red", "green", "blue" is needed)");
  EXPECT_EQ(why<shop::colour>("\"\""), R"(one of "red", "green", "blue" is needed)");
  EXPECT_THROW(write(static_cast<shop::colour>(9)), usage_error);
}

TEST(json, containers) {
  there_and_back(std::vector<bool>{true, false}, "[true,false]");
  there_and_back(std::deque<int>{1, 2}, "[1,2]");
  there_and_back(std::list<std::string>{"a"}, R"(["a"])");
  there_and_back(std::set<int>{1, 2}, "[1,2]");
  there_and_back(std::array<int, 2>{1, 2}, "[1,2]");
  there_and_back(std::map<std::string, int>{{"a", 1}, {"b\n", 2}}, R"({"a":1,"b\n":2})");
  there_and_back(std::unordered_map<std::string, int>{{"a", 1}}, R"({"a":1})");
  there_and_back(std::map<shop::colour, int>{{shop::colour::red, 1}}, R"({"red":1})");
  there_and_back(std::vector<std::optional<int>>{1, std::nullopt}, "[1,null]");
  EXPECT_EQ((why<std::array<int, 2>>("[1]")), "an array of 2 is needed");
  EXPECT_EQ((why<std::array<int, 2>>("[1,2,3]")), "an array of 2 is needed");
  EXPECT_EQ((why<std::map<std::string, int>>(R"({"a":1,"a":2})")), "a: it is there twice");
  EXPECT_EQ((why<std::map<shop::colour, int>>(R"({"a":1})")).substr(0, 9), "a: one of");
}

TEST(json, structs_within_themselves) {
  const auto read_back =
      read<shop::node>(R"({"class":1,"children":[{"class":2,"children":[]}],"next":)"
                       R"({"class":3,"children":[]}})");
  EXPECT_EQ(read_back.children[0].class_, 2);
  EXPECT_EQ(write(read_back), R"({"class":1,"children":[{"class":2,"children":[]}],"next":)"
                              R"({"class":3,"children":[]}})");
}

TEST(json, variants) {
  using any = std::variant<std::monostate, bool, double, std::string, std::vector<int>>;
  for (const char* text : {"null", "true", "1.5", "\"a\"", "[1]"})
    EXPECT_EQ(write(read<any>(text)), text);
  EXPECT_EQ(why<any>("{}"), "a value of another kind is needed");
  using shape = std::variant<shop::circle, shop::square, int>;
  for (const char* text : {R"({"type":"circle","radius":1.5})", R"({"type":"square","side":2})"})
    EXPECT_EQ(write(read<shape>(text, {.refuse_unknown = true})), text);
  EXPECT_EQ(std::get<int>(read<shape>("3")), 3);
  EXPECT_EQ(why<shape>("{}"), "type: it is missing");
  EXPECT_EQ(why<shape>(R"({"type":1})"), "type: a string is needed");
  EXPECT_EQ(why<shape>(R"({"type":"line"})"), "type: there is no such type");
  EXPECT_EQ(why<shape>(R"({"type":"circle"})"), "radius: it is missing");
  using one = std::variant<shop::circle, std::string>;
  EXPECT_EQ(write(one(shop::circle{1})), R"({"radius":1})");
}

TEST(json, times) {
  const auto second = std::chrono::sys_seconds(1'764'105'823s);
  there_and_back(second, "\"2025-11-25T21:23:43Z\"");
  there_and_back(std::chrono::sys_time<std::chrono::milliseconds>(second + 7ms),
                 "\"2025-11-25T21:23:43.007Z\"");
  there_and_back(std::chrono::system_clock::time_point(-1ns), "\"1969-12-31T23:59:59.999999999Z\"");
  EXPECT_EQ(read<std::chrono::sys_seconds>("\"2025-11-25t22:53:43.9+01:30\""), second);
  there_and_back(1'500ms, "1500");
  there_and_back(std::chrono::year_month_day(std::chrono::year(2024), std::chrono::February,
                                             std::chrono::day(29)),
                 "\"2024-02-29\"");
  for (const char* bad :
       {"\"2023-02-29\"", "\"2024-2-29\"", "\"2024-02-29 \"", "7", "\"\"", "\"2024-13-01\""})
    EXPECT_EQ(why<std::chrono::year_month_day>(bad), "a date such as \"2026-11-25\" is needed");
  for (const char* bad :
       {"\"2025-11-25T21:23:43\"", "\"2025-11-25\"", "\"2025-11-25T24:00:00Z\"", "7",
        "\"2025-11-25T21:23:43.Z\"", "\"2025-11-25T21:23:43+1:00\"", "\"2025-11-25T21:23:43Zx\""})
    EXPECT_EQ(why<std::chrono::sys_seconds>(bad),
              "a time such as \"2026-11-25T21:23:43Z\" is needed");
  EXPECT_EQ(why<std::chrono::system_clock::time_point>("\"2263-01-01T00:00:00Z\""),
            "this time is too far away");
  EXPECT_EQ(why<std::chrono::system_clock::time_point>("\"0001-01-01T00:00:00Z\""),
            "this time is too far away");
}

TEST(json, types_of_ones_own) {
  EXPECT_EQ(write(read<std::vector<shop::money>>("[1,2]")), "[1,2]");
  EXPECT_EQ(why<std::vector<shop::money>>("[1,-1]"), "[1]: an amount is needed");
}

TEST(json, what_is_no_json_is_refused) {
  for (const char* bad :
       {"",         " ",    "{",      "[1,]",     "[1 2]",       "{\"a\":1,}",
        "{a:1}",    "'a'",  "01",     "1.",       "+1",          ".5",
        "NaN",      "tru",  "\"a",    "\"\x01\"", "\"\\x\"",     "\"\\ud800\"",
        "\"\xff\"", "[1]x", "[1][2]", "// a",     "{\"x\":tru}", "\"\xed\xa0\x80\""}) {
    EXPECT_EQ(why<shop::nothing>(bad).substr(0, 16), "this is not JSON") << bad;
  }
  EXPECT_EQ(why<int>(std::string_view("1\0", 2)).substr(0, 16), "this is not JSON");
}

TEST(json, limits) {
  EXPECT_EQ(why<std::string>("\"1234\"", {.bytes = 6}), "nothing");
  EXPECT_EQ(why<std::string>("\"12345\"", {.bytes = 6}), "the text has more than 6 bytes");
  const auto nested = [](std::size_t depth) {
    return "{\"x\":" + std::string(depth - 1, '[') + "1" + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(why<shop::nothing>(nested(64)), "nothing");
  EXPECT_EQ(why<shop::nothing>(nested(65)), "the depth is more than 64");
  EXPECT_EQ(why<shop::nothing>(nested(3), {.depth = 3}), "nothing");
  EXPECT_EQ(why<shop::nothing>(nested(4), {.depth = 3}), "the depth is more than 3");
  EXPECT_EQ(why<shop::nothing>(nested(100'000)), "the depth is more than 64");
  // A large text does not stay in memory, and a small one is read after it.
  std::string large = "[";
  for (int i = 0; i < 200'000; ++i) large += "1,";
  large.back() = ']';
  EXPECT_EQ(read<std::vector<int>>(large).size(), 200'000u);
  EXPECT_EQ(read<std::vector<int>>("[1]").size(), 1u);
}

}  // namespace
}  // namespace troupe::json
