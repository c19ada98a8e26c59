#include "troupe/task/trace_context.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace troupe {
namespace {

TEST(trace_context, the_example_of_the_standard_is_read_and_written) {
  const std::string field = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto read = trace_context::parse(field);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id[0], 0x4b);
  EXPECT_EQ(read->trace_id[15], 0x36);
  EXPECT_EQ(read->span_id[1], 0xf0);
  EXPECT_TRUE(read->sampled);
  EXPECT_EQ(read->traceparent(), field);
  const auto unsampled = trace_context::parse(field.substr(0, 53) + "00");
  ASSERT_TRUE(unsampled);
  EXPECT_FALSE(unsampled->sampled);
}

TEST(trace_context, a_later_version_may_have_more_parts) {
  const std::string rest = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_TRUE(trace_context::parse("01" + rest));
  EXPECT_TRUE(trace_context::parse("cc" + rest + "-what the future brings"));
  EXPECT_FALSE(trace_context::parse("cc" + rest + "."));
  EXPECT_FALSE(trace_context::parse("00" + rest + "-"));
  EXPECT_FALSE(trace_context::parse("ff" + rest));
}

TEST(trace_context, what_breaks_the_rules_is_no_context) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(trace_context::parse(good.substr(0, i))) << i;
    std::string changed = good;
    changed[i] = 'F';
    EXPECT_FALSE(trace_context::parse(changed)) << i;
    changed[i] = '\0';
    EXPECT_FALSE(trace_context::parse(changed)) << i;
  }
  EXPECT_FALSE(trace_context::parse("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
  EXPECT_FALSE(trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
}

TEST(trace_context, new_ones_differ) {
  std::set<std::string> seen;
  const trace_context first = trace_context::begin();
  for (int i = 0; i < 1000; ++i) {
    const trace_context child = first.child();
    EXPECT_EQ(child.trace_id, first.trace_id);
    seen.insert(child.traceparent());
    seen.insert(trace_context::begin().traceparent());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

std::string state_of(std::string_view field) {
  const auto read =
      trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", field);
  return read ? std::string(read->tracestate()) : "no context";
}

TEST(trace_context, tracestate_is_kept_if_it_follows_the_rules) {
  const std::string a256(256, 'a'), a241(241, 'a'), a14(14, 'a');
  const std::string tenant = a241 + "@" + a14 + "=1";
  const struct {
    std::string field, kept;
  } cases[] = {
      {"", ""},
      {"a=1", "a=1"},
      {"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"},
      {" a=1 \t,\t b=2 ,, ,c=3,", "a=1,b=2,c=3"},
      {"a= x y", "a= x y"},
      {"a_-*/0=!\"#$%&'()*+-./:;<>?@[]^_`{|}~", "a_-*/0=!\"#$%&'()*+-./:;<>?@[]^_`{|}~"},
      {"0t@v=1", "0t@v=1"},
      {a256 + "=1", a256 + "=1"},
      {tenant, tenant},
      {"a", ""},
      {"=1", ""},
      {"a=", ""},
      {"a=1=2", ""},
      {"A=1", ""},
      {"0a=1", ""},
      {"a b=1", ""},
      {"a =1", ""},
      {"a@=1", ""},
      {"@a=1", ""},
      {"a@b@c=1", ""},
      {"a@0=1", ""},
      {"a=\x7f", ""},
      {"a=\xc3\xa4", ""},
      {"a=1\r\nb=2", ""},
      {"b=2,a", ""},
      {a256 + "a=1", ""},
      {"a=" + a256 + "a", ""},
      {"a" + a241 + "@b=1", ""},
      {"a@" + a14 + "b=1", ""},
  };
  for (const auto& [field, kept] : cases) EXPECT_EQ(state_of(field), kept) << field;
}

TEST(trace_context, a_long_tracestate_is_shortened) {
  std::string list;
  for (int i = 0; i < 32; ++i) list += (i == 0 ? "k" : ",k") + std::to_string(i) + "=v";
  EXPECT_EQ(state_of(list), list);
  EXPECT_EQ(state_of(list + ",more=v"), "") << "33 entries";
  const auto entry = [](char name, std::size_t length) {
    return std::string(1, name) + "=" + std::string(length - 2, 'v');
  };
  const std::string a = entry('a', 128), b = entry('b', 129), c = entry('c', 128),
                    d = entry('d', 125), e = entry('e', 128);
  EXPECT_EQ(state_of(a + "," + c + "," + d + "," + e), a + "," + c + "," + d + "," + e) << "512";
  EXPECT_EQ(state_of(b + "," + a + "," + c + "," + d + "," + e), a + "," + c + "," + d + "," + e);
  EXPECT_EQ(state_of(a + "," + c + "," + e + "," + a), a + "," + c + "," + e);
}

TEST(trace_context, tracestate_goes_with_the_trace) {
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto with = trace_context::parse(parent, "a=1"), without = trace_context::parse(parent),
             other = trace_context::parse(parent, "a=2");
  ASSERT_TRUE(with && without && other);
  EXPECT_EQ(*with, *trace_context::parse(parent, "a=1"));
  EXPECT_NE(*with, *without);
  EXPECT_NE(*with, *other);
  EXPECT_EQ(with->child().tracestate(), "a=1");
  EXPECT_EQ(trace_context::begin().tracestate(), "");
  EXPECT_FALSE(trace_context::parse(parent + "x", "a=1"));
}

}  // namespace
}  // namespace troupe
