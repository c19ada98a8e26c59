#include "base/text/json_string.hpp"

#include <gtest/gtest.h>

namespace troupe::base {
namespace {

std::string quoted(std::string_view text) {
  std::string json;
  add_json_string(json, text);
  return json;
}

TEST(json_string, special_bytes_are_escaped) {
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a\"b\\c\n\r\t/"), R"("a\"b\\c\n\r\t/")");
  EXPECT_EQ(quoted(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
}

TEST(json_string, what_is_no_utf8_is_replaced) {
  EXPECT_EQ(quoted("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  const std::string bad = "\xEF\xBF\xBD";
  for (const char* invalid : {"\x80", "\xc3", "\xff", "\xc1"}) {
    EXPECT_EQ(quoted(invalid), "\"" + bad + "\"");
  }
  EXPECT_EQ(quoted("\xe0\x80\x80"), "\"" + bad + bad + bad + "\"");  // longer than it has to be
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"" + bad + bad + bad + "\"");  // a surrogate
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");
  EXPECT_EQ(quoted("\xc3\"x"), "\"" + bad + "\\\"x\"");
}

}  // namespace
}  // namespace troupe::base
