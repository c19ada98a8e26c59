#include "troupe/http/values/cookie.hpp"

#include <gtest/gtest.h>

#include "http/values/cookie_pairs.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {
namespace {

using namespace std::chrono_literals;

TEST(http_cookie, is_safe_by_default) {
  EXPECT_EQ(cookie("a", "1").text(), "a=1; Path=/; Secure; HttpOnly; SameSite=Lax");
}

TEST(http_cookie, has_all_attributes) {
  const auto set = cookie("a", "")
                       .path("/x y")
                       .domain("example.org")
                       .max_age(90s)
                       .expires(std::chrono::system_clock::time_point(784'111'777s))
                       .secure(false)
                       .http_only(false)
                       .site(same_site::strict);
  EXPECT_EQ(set.text(),
            "a=; Path=/x y; Domain=example.org; Max-Age=90; Expires=Sun, 06 Nov 1994 08:49:37 GMT; "
            "SameSite=Strict");
  EXPECT_EQ(cookie("a", "1").path("").site(same_site::none).text(),
            "a=1; Secure; HttpOnly; SameSite=None");
  EXPECT_EQ(cookie("a", "1").max_age(-5s).path("").text(),
            "a=1; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
  EXPECT_EQ(cookie::removal("a").text(),
            "a=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly; "
            "SameSite=Lax");
}

TEST(http_cookie, no_part_can_add_another_one) {
  for (const char* name : {"", "a b", "a=b", "a;b", "a\r\n", "\xc3\xa4", "a,b", "\"a\""}) {
    EXPECT_THROW(cookie(name, "1"), usage_error) << name;
  }
  for (const char* value : {"a;b", "a b", "a\r\nX: y", "a,b", "\"a\"", "\\", "\xc3\xa4", "\x7f"}) {
    EXPECT_THROW(cookie("a", value), usage_error) << value;
  }
  EXPECT_THROW(cookie("a", std::string_view("\0", 1)), usage_error);
  EXPECT_THROW(cookie("a", "1").path("/;Secure"), usage_error);
  EXPECT_THROW(cookie("a", "1").path("x"), usage_error);
  EXPECT_THROW(cookie("a", "1").path("/\n"), usage_error);
  for (const char* domain : {"a;b", "a b", "a\r", "a,b", "http://a", "a:80"}) {
    EXPECT_THROW(cookie("a", "1").domain(domain), usage_error) << domain;
  }
}

TEST(http_cookie, is_refused_where_clients_would_drop_it) {
  const std::string most(cookie::bytes_max - 1, 'x');
  EXPECT_EQ(cookie("a", most).text().find(most), 2u);
  EXPECT_THROW(cookie("a", most + "x"), usage_error);
  EXPECT_THROW(static_cast<void>(cookie("a", "1").secure(false).site(same_site::none).text()),
               usage_error);
  EXPECT_THROW(static_cast<void>(cookie("__Secure-a", "1").secure(false).text()), usage_error);
  EXPECT_THROW(static_cast<void>(cookie("__host-a", "1").secure(false).text()), usage_error);
  EXPECT_THROW(static_cast<void>(cookie("__Host-a", "1").domain("b").text()), usage_error);
  EXPECT_THROW(static_cast<void>(cookie("__Host-a", "1").path("/b").text()), usage_error);
  EXPECT_EQ(cookie("__Host-a", "1").text(), "__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax");
}

TEST(http_cookie, pairs_of_a_request) {
  std::string all;
  for (std::string_view left = "a=1; b = \"2\" ;c;=d; ;e=f=g;"; !left.empty();) {
    const cookie_pair pair = take_cookie_pair(left);
    all += "<" + std::string(pair.name) + "|" + std::string(pair.value) + ">";
  }
  EXPECT_EQ(all, "<a|1><b|\"2\"><|c><|d><|><e|f=g>");
}

}  // namespace
}  // namespace troupe::http
