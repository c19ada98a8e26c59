#include "http/behind_proxy/proxy_header.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::http {
namespace {

using namespace std::string_literals;
using kind = proxy_step::kind;
using origin = proxy_header::origin;

constexpr std::size_t most = 1024;

const std::string signature = "\r\n\r\n\0\r\nQUIT\n"s;

// A header of version 2.
std::string binary(char command, char family, const std::string& rest) {
  return signature + command + family + static_cast<char>(rest.size() >> 8) +
         static_cast<char>(rest.size() & 255) + rest;
}
const std::string v4_addresses = "\xc0\x00\x02\x01\x0a\x00\x00\x01\xdc\x04\x01\xbb"s;
std::string v6_addresses() {
  return "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x01" + std::string(15, '\0') + "\x01" +
         "\xdc\x04\x01\xbb"s;
}

// Reads as a connection does: never a byte more than the reader says.
std::string read(const std::string& bytes, std::size_t limit = most) {
  std::string came;
  proxy_header header;
  for (int steps = 0; steps < 200; ++steps) {
    const proxy_step step = read_proxy_header(came, limit, header);
    if (step.outcome == kind::bad) return "bad";
    if (step.outcome == kind::more) {
      if (came.size() == bytes.size()) return "incomplete";
      came = bytes.substr(0, came.size() + step.bytes);
      continue;
    }
    if (step.bytes != came.size()) return "it read too much";
    const std::string left = " " + std::to_string(bytes.size() - came.size());
    switch (header.from) {
      case origin::proxy:
        return "proxy" + left;
      case origin::address:
        return header.client.to_string() + left;
      case origin::unnamed:
        return "unnamed" + left;
    }
  }
  return "no progress";
}

TEST(proxy_header, of_version_1_says_the_client) {
  EXPECT_EQ(read("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\nGET"), "192.0.2.1:56324 3");
  EXPECT_EQ(read("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n"), "1.1.1.1:1 0");
  EXPECT_EQ(read("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"),
            "255.255.255.255:65535 0");
  EXPECT_EQ(read("PROXY TCP6 2001:db8::1 ::1 56324 443\r\nx"), "[2001:db8::1]:56324 1");
  EXPECT_EQ(read("PROXY TCP6 :: :: 0 0\r\n"), "[::]:0 0");
  EXPECT_EQ(read("PROXY UNKNOWN\r\nGET"), "proxy 3");
  EXPECT_EQ(read("PROXY UNKNOWN ffff:: what ever\r\n"), "proxy 0");
}

TEST(proxy_header, of_version_1_is_read_byte_by_byte_to_the_same) {
  const std::string header = "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n";
  proxy_header to;
  for (std::size_t bytes = 0; bytes < header.size(); ++bytes) {
    const proxy_step step = read_proxy_header(header.substr(0, bytes), most, to);
    ASSERT_EQ(step.outcome, kind::more) << bytes;
    ASSERT_GE(step.bytes, 1u);
    ASSERT_LE(bytes + step.bytes, header.size()) << bytes;
  }
  EXPECT_EQ(read_proxy_header(header, most, to).bytes, header.size());
}

TEST(proxy_header, of_version_1_is_refused_if_it_is_malformed) {
  for (const char* text :
       {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY  TCP4 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4  1.1.1.1 1.1.1.1 1 1\r\n", "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 1\r\n", "PROXY TCP4 1.1.1.1 1.1.1.1 1 \r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n", "PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 -1 1\r\n", "PROXY TCP4 1.1.1.256 1.1.1.1 1 1\r\n",
        "PROXY TCP4 ::1 1.1.1.1 100 100\r\n", "PROXY TCP6 1.1.1.1 ::1 100 100\r\n",
        "PROXY tcp4 1.1.1.1 1.1.1.1 1 1\r\n", "PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n\r\n", "PROXY TCP4 1.1.1.1 1.1.1.1 1\r1\r\n",
        "PROXY UNKNOWN \n\r\n", "proxy UNKNOWN\r\n", "PROXY\r\n          "}) {
    EXPECT_EQ(read(text), "bad") << text;
  }
  EXPECT_EQ(read("PROXY TCP4 1.1.1.1\0 1.1.1.1 1 1\r\n"s), "bad");
}

TEST(proxy_header, of_version_1_has_at_most_107_bytes) {
  const std::string begin = "PROXY UNKNOWN ";
  EXPECT_EQ(read(begin + std::string(105 - begin.size(), 'x') + "\r\n"), "proxy 0");
  EXPECT_EQ(read(begin + std::string(106 - begin.size(), 'x') + "\r\n"), "bad");
}

TEST(proxy_header, of_version_2_says_the_client) {
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses) + "GET"), "192.0.2.1:56324 3");
  EXPECT_EQ(read(binary(0x21, 0x21, v6_addresses()) + "GET"), "[2001:db8::1]:56324 3");
  EXPECT_EQ(read(binary(0x21, 0x31, std::string(216, 'p'))), "unnamed 0");
  EXPECT_EQ(read(binary(0x21, 0x00, "")), "proxy 0");
  EXPECT_EQ(read(binary(0x21, 0x00, "what ever")), "proxy 0");
  EXPECT_EQ(read(binary(0x20, 0x00, "")), "proxy 0");
  EXPECT_EQ(read(binary(0x20, 0x11, v4_addresses)), "proxy 0");
  EXPECT_EQ(read(binary(0x20, 0x77, "what ever") + "x"), "proxy 1");
}

TEST(proxy_header, of_version_2_is_refused_if_it_is_malformed) {
  EXPECT_EQ(read("\r\n\r\nGET / HTTP/1.1\r\n"), "bad");
  EXPECT_EQ(read(binary(0x22, 0x11, v4_addresses)), "bad");  // no such command
  EXPECT_EQ(read(binary(0x11, 0x11, v4_addresses)), "bad");  // no such version
  EXPECT_EQ(read(binary(0x21, 0x12, v4_addresses)), "bad");  // datagrams
  EXPECT_EQ(read(binary(0x21, 0x41, v4_addresses)), "bad");  // no such family
  EXPECT_EQ(read(binary(0x21, 0x10, v4_addresses)), "bad");
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses.substr(1))), "bad");
  EXPECT_EQ(read(binary(0x21, 0x21, v6_addresses().substr(1))), "bad");
  EXPECT_EQ(read(binary(0x21, 0x31, std::string(215, 'p'))), "bad");
}

TEST(proxy_header, of_version_2_is_refused_if_it_is_too_long) {
  const std::string padding =
      "\x04"s + '\0' + static_cast<char>(200 - 16 - 12 - 3) + std::string(200 - 16 - 12 - 3, '\0');
  const std::string header = binary(0x21, 0x11, v4_addresses + padding);
  ASSERT_EQ(header.size(), 200u);
  EXPECT_EQ(read(header, 200), "192.0.2.1:56324 0");
  EXPECT_EQ(read(header, 199), "bad");
  EXPECT_EQ(read(binary(0x21, 0x11, std::string(65'535, 'x')).substr(0, 16)), "bad");
}

TEST(proxy_header, of_version_2_has_additions_that_are_skipped) {
  const std::string host = "\x02\x00\x04"s + "host";
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses + host + "\xea\x00\x00"s) + "x"),
            "192.0.2.1:56324 1");
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses + "\x02\x00"s)), "bad");
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses + "\x02\x00\x05"s + "host")), "bad");
}

// The checksum was computed by another program.
TEST(proxy_header, of_version_2_has_the_checksum_that_it_says) {
  const std::string said = "\x03\x00\x04"s;
  const std::string sum = "\xa4\x54\x06\x56"s;
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses + said + sum)), "192.0.2.1:56324 0");
  for (std::size_t i = 0; i < 12; ++i) {
    std::string damaged = binary(0x21, 0x11, v4_addresses + said + sum);
    damaged[16 + i] ^= 1;
    EXPECT_EQ(read(damaged), "bad") << i;
  }
  EXPECT_EQ(read(binary(0x21, 0x11, v4_addresses + "\x03\x00\x03"s + "abc")), "bad");
}

}  // namespace
}  // namespace troupe::http
