#include "http/behind_proxy/reports/forwarded.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/http/parser.hpp"

namespace troupe::http {
namespace {

const std::vector<network> inside{"10.0.0.0/8", "2001:db8:1::/48"};

// The client of a request with these lines, which came from `peer`; "" for a Unix socket.
std::string client_of(const std::string& lines, forwarded_field source,
                      const std::string& peer = "10.0.0.1:5000",
                      const std::vector<network>& trusted = inside) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
  parser reading(side::requests);
  EXPECT_EQ(reading.next(head).what, parser::event::head) << lines;
  const std::optional<endpoint> from =
      peer.empty() ? std::nullopt : std::optional(endpoint::parse(peer));
  const auto found = client_behind(from, reading.head().fields, source, trusted);
  return found ? found->to_string() : "none";
}
std::string listed(const std::string& list) {
  return client_of("X-Forwarded-For: " + list + "\r\n", forwarded_field::x_forwarded_for);
}
std::string forwarded(const std::string& list) {
  return client_of("Forwarded: " + list + "\r\n", forwarded_field::forwarded);
}

TEST(network, contains_the_addresses_with_its_prefix) {
  const auto holds = [](const char* range, const char* address) {
    return network(range).contains(endpoint::parse(std::string(address) + ":80"));
  };
  EXPECT_TRUE(holds("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(holds("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(holds("192.0.2.128/25", "192.0.2.128"));
  EXPECT_FALSE(holds("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(holds("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(holds("192.0.2.1/32", "192.0.2.2"));
  EXPECT_TRUE(holds("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(holds("0.0.0.0/0", "[2001:db8::1]"));
  EXPECT_TRUE(holds("::/0", "[2001:db8::1]"));
  EXPECT_TRUE(holds("2001:db8::/33", "[2001:db8:7fff::1]"));
  EXPECT_FALSE(holds("2001:db8::/33", "[2001:db8:8000::1]"));
  EXPECT_TRUE(holds("10.0.0.0/8", "[::ffff:10.1.2.3]"));
  EXPECT_TRUE(holds("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_FALSE(holds("unix", "10.1.2.3"));
  EXPECT_TRUE(network("unix").is_unix());
}

TEST(network, refuses_a_text_that_is_malformed) {
  for (const char* text :
       {"", "10", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/8/8", "10.0.0.1/8", "10.0.0.0/-1",
        "10.0.0.0/08", "[::1]", "localhost", "10.0.0.0/8 ", "Unix"})
    EXPECT_THROW(network{text}, option_error) << text;
}

TEST(x_forwarded_for, is_read_from_the_right_as_far_as_proxies_are_trusted) {
  EXPECT_EQ(listed("192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(listed("192.0.2.1, 10.0.0.2"), "192.0.2.1:0");
  EXPECT_EQ(listed("198.51.100.7, 192.0.2.1, 10.0.0.3,10.0.0.2"), "192.0.2.1:0");
  EXPECT_EQ(listed("10.0.0.9, 192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(listed("10.0.0.3, 10.0.0.2"), "10.0.0.3:0");
  EXPECT_EQ(listed("2001:db8::1, 2001:db8:1::2"), "[2001:db8::1]:0");
  EXPECT_EQ(listed("[2001:db8::1]:4711"), "[2001:db8::1]:4711");
  EXPECT_EQ(listed("192.0.2.1:4711"), "192.0.2.1:4711");
  EXPECT_EQ(listed("192.0.2.1, , ,"), "192.0.2.1:0");
  EXPECT_EQ(listed(""), "10.0.0.1:5000");
}

TEST(x_forwarded_for, goes_on_in_the_line_before) {
  EXPECT_EQ(client_of("X-Forwarded-For: 198.51.100.7, 192.0.2.1\r\nA: b\r\n"
                      "x-forwarded-for: 10.0.0.3, 10.0.0.2\r\n",
                      forwarded_field::x_forwarded_for),
            "192.0.2.1:0");
}

TEST(x_forwarded_for, of_others_is_ignored) {
  const std::string line = "X-Forwarded-For: 192.0.2.1\r\n";
  const auto source = forwarded_field::x_forwarded_for;
  EXPECT_EQ(client_of(line, source, "11.0.0.1:5000"), "11.0.0.1:5000");
  EXPECT_EQ(client_of(line, source, "10.0.0.1:5000", {}), "10.0.0.1:5000");
  EXPECT_EQ(client_of(line, source, ""), "none");
  EXPECT_EQ(client_of(line, source, "", {"unix"}), "192.0.2.1:0");
  EXPECT_EQ(client_of(line, source, "[::ffff:10.0.0.1]:5000"), "192.0.2.1:0");
  // The proxies write the other field.
  EXPECT_EQ(client_of(line, forwarded_field::forwarded), "10.0.0.1:5000");
  EXPECT_EQ(client_of("Forwarded: for=192.0.2.1\r\n", source), "10.0.0.1:5000");
}

TEST(x_forwarded_for, ends_before_what_is_no_address) {
  for (const char* last : {"unknown", "_hidden", "192.0.2.1:", "192.0.2.1:99999", "192.0.2.300",
                           "a.b.c.d", "[::1", "[::1]x", "\"192.0.2.1\"", "1", "::1:80:"})
    EXPECT_EQ(listed("198.51.100.7, " + std::string(last)), "10.0.0.1:5000") << last;
  EXPECT_EQ(listed("198.51.100.7, unknown, 10.0.0.2"), "10.0.0.2:0");
}

TEST(forwarded, is_read_from_the_right_as_far_as_proxies_are_trusted) {
  EXPECT_EQ(forwarded("for=192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(forwarded("For=192.0.2.1;proto=https;by=10.0.0.1"), "192.0.2.1:0");
  EXPECT_EQ(forwarded("by=10.0.0.1 ; for=192.0.2.1"), "192.0.2.1:0");
  EXPECT_EQ(forwarded("for=\"192.0.2.1:4711\""), "192.0.2.1:4711");
  EXPECT_EQ(forwarded("for=\"[2001:db8::1]\""), "[2001:db8::1]:0");
  EXPECT_EQ(forwarded("for=\"[2001:db8::1]:4711\";host=a"), "[2001:db8::1]:4711");
  EXPECT_EQ(forwarded("for=198.51.100.7, for=192.0.2.1, for=10.0.0.2;host=\"a,b;c\""),
            "192.0.2.1:0");
  EXPECT_EQ(forwarded("for=192.0.2.1;host=\"a\\\"b, for=10.0.0.9\""), "192.0.2.1:0");
}

TEST(forwarded, ends_before_what_is_no_address) {
  for (const char* last :
       {"for=unknown", "for=_hidden", "for=\"_hidden\"", "proto=https", "for=", "for=\"\"",
        "for=192.0.2.1:80", "for=2001:db8::1", "for=[2001:db8::1]", "for=\"2001:db8::1\"",
        "for=192.0.2.1;for=192.0.2.2", "for=\"192.0.2.1", "for =192.0.2.1", "192.0.2.1"})
    EXPECT_EQ(forwarded("for=198.51.100.7, " + std::string(last)), "10.0.0.1:5000") << last;
}

// What a client has sent, before the comma, changes nothing of what a proxy has appended.
TEST(forwarded, cannot_be_hidden_by_an_odd_quote) {
  for (const char* sent : {"for=\"", "\"", "for=\"a\\", "for=1.2.3.4;x=\"", "\\\"", "a=\"\\\""})
    EXPECT_EQ(forwarded(std::string(sent) + ", for=192.0.2.1"), "192.0.2.1:0") << sent;
}

}  // namespace
}  // namespace troupe::http
