#include "base/text/json_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace troupe::base {
namespace {

TEST(json_text, each_value_has_its_form) {
  const struct {
    std::function<void(json_text&)> write;
    const char* form;
  } cases[] = {
      {[](json_text& out) { out.value("a\"\n"); }, R"("a\"\n")"},
      {[](json_text& out) { out.value(true).value(false); }, "true,false"},
      {[](json_text& out) { out.value(INT64_MIN).value(UINT64_MAX); },
       "-9223372036854775808,18446744073709551615"},
      {[](json_text& out) { out.quoted(INT64_MIN).quoted(UINT64_MAX); },
       R"("-9223372036854775808","18446744073709551615")"},
      {[](json_text& out) { out.value(0.1).value(-1e300).value(2.0); }, "0.1,-1e+300,2"},
      {[](json_text& out) { out.value(std::numeric_limits<double>::infinity()); }, "null"},
      {[](json_text& out) { out.value(std::numeric_limits<double>::quiet_NaN()).null(); },
       "null,null"},
      {[](json_text& out) {
         out.hex(std::array<std::uint8_t, 3>{0, 0x1f, 0xff});
       },
       R"("001fff")"},
      {[](json_text& out) { out.raw("[1]").raw("{}"); }, "[1],{}"},
      {[](json_text& out) { out.value_by([](std::string& text) { text += "1.500"; }).value(2); },
       "1.500,2"},
      {[](json_text& out) { out.open('[').open('{').close('}').open('[').close(']').close(']'); },
       "[{},[]]"},
      {[](json_text& out) {
         out.open('{').member("a", 1).key("b\"").open('[').value(2).close(']');
       },
       R"({"a":1,"b\"":[2])"},
  };
  for (const auto& [write, form] : cases) {
    json_text text;
    write(text);
    EXPECT_EQ(std::move(text).take(), form);
  }
}

// A sink that keeps each piece apart.
struct pieces {
  std::vector<std::string> all;
  void append(std::string_view piece) { all.emplace_back(piece); }
};

TEST(json_text, the_sink_may_belong_to_another_object) {
  pieces sink;
  json_writer<pieces&> text(sink);
  text.open('{').member("a", "b\xff").close('}');
  std::string all;
  for (const std::string& piece : sink.all) all += piece;
  EXPECT_EQ(all, "{\"a\":\"b\xEF\xBF\xBD\"}");
}

TEST(json_text, text_behind_a_value_can_be_removed) {
  std::string text;
  json_writer<std::string&> json(text);
  json.open('[').value(1);
  const std::size_t whole = text.size();
  json.open('{').key("half");
  text.resize(whole);
  json.resume_after_value();
  json.value(2).close(']');
  EXPECT_EQ(text, "[1,2]");
}

}  // namespace
}  // namespace troupe::base
