#include "http/client/proxy_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "troupe/base/error.hpp"

namespace troupe::http {
namespace {

bool is_direct(const char* none, const char* target) {
  proxy_settings given;
  given.all = "proxy:3128";
  given.none = none;
  return proxy_table(given).of(url::parse(target)) == nullptr;
}

TEST(http_proxy_table, each_scheme_has_its_proxy) {
  proxy_settings given;
  EXPECT_EQ(proxy_table(given).of(url::parse("http://a/")), nullptr);
  given.http = "one";
  given.all = "http://u:p%40@[::1]:99/ignored";
  const proxy_table table(given);
  EXPECT_EQ(table.of(url::parse("http://a/"))->at.authority(), "one");
  EXPECT_EQ(table.of(url::parse("http://a/"))->authorization, "");
  EXPECT_EQ(table.of(url::parse("https://a/"))->at.authority(), "[::1]:99");
  EXPECT_EQ(table.of(url::parse("https://a/"))->authorization, "Basic dTpwQA==");
}

TEST(http_proxy_table, exceptions_are_names_addresses_and_networks) {
  for (const char* none : {"*", "a.org", " ,,b,a.org", ".a.org", "*.a.org", "a.org:80", "A.org."})
    EXPECT_TRUE(is_direct(none, "http://a.org/")) << none;
  for (const char* none : {"", "org.a", "aa.org", "x.a.org", "a.org:81", "a", "1.2.3.4"})
    EXPECT_FALSE(is_direct(none, "http://a.org/")) << none;
  EXPECT_TRUE(is_direct("a.org", "http://x.y.a.org/"));
  EXPECT_FALSE(is_direct("a.org", "http://xa.org/"));
  EXPECT_TRUE(is_direct("a.org", "http://a.org./"));
  EXPECT_TRUE(is_direct("a.org:443", "https://a.org/"));
  EXPECT_TRUE(is_direct("10.1.2.3", "http://10.1.2.3/"));
  EXPECT_TRUE(is_direct("10.0.0.0/8", "http://10.255.0.1/"));
  EXPECT_FALSE(is_direct("10.0.0.0/8", "http://11.0.0.1/"));
  EXPECT_TRUE(is_direct("10.1.2.128/25", "http://10.1.2.129/"));
  EXPECT_FALSE(is_direct("10.1.2.128/25", "http://10.1.2.127/"));
  EXPECT_TRUE(is_direct("0.0.0.0/0", "http://1.2.3.4/"));
  EXPECT_FALSE(is_direct("0.0.0.0/0", "http://a/"));
  EXPECT_TRUE(is_direct("::1", "http://[::1]/"));
  EXPECT_TRUE(is_direct("[::1]:80", "http://[0:0::1]/"));
  EXPECT_FALSE(is_direct("[::1]:81", "http://[::1]/"));
  EXPECT_TRUE(is_direct("fe80::/10", "http://[febf::1]/"));
  EXPECT_FALSE(is_direct("fe80::/10", "http://[fec0::1]/"));
}

TEST(http_proxy_table, refuses_what_is_malformed_without_showing_a_password) {
  for (const char* text : {"https://proxy", "socks5://proxy", "http://", "proxy:0", "u%3a:p@proxy",
                           "u:%0a@proxy", "u:%zz@proxy", "a b"}) {
    proxy_settings given;
    given.all = text;
    EXPECT_THROW(proxy_table{given}, option_error) << text;
  }
  for (const char* none :
       {"a:0", "a:x", "10.0.0.0/33", "a/8", "::/129", "10.0.0.0/", ".", ":80", "a@b"}) {
    EXPECT_THROW(is_direct(none, "http://a/"), option_error) << none;
  }
  proxy_settings secret;
  secret.https = "u:hidden@a:b:c";
  try {
    const proxy_table table(secret);
    ADD_FAILURE();
  } catch (const option_error& e) {
    EXPECT_FALSE(std::string(e.what()).contains("hidden")) << e.what();
  }
}

TEST(http_proxy_table, limits_hold_at_the_limit_and_one_past_it) {
  proxy_settings given;
  given.all = "u:" + std::string(8'192 - 4, 'p') + "@a";
  EXPECT_NO_THROW(proxy_table{given});
  given.all += "a";
  EXPECT_THROW(proxy_table{given}, option_error);
  given.all = "";
  given.none = std::string(65'535, ' ') + "a";
  EXPECT_NO_THROW(proxy_table{given});
  given.none += " ";
  EXPECT_THROW(proxy_table{given}, option_error);
}

TEST(http_proxy_table, reads_the_environment_when_it_is_asked_to) {
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY",
                           "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
    ::unsetenv(name);
  ::setenv("HTTP_PROXY", "evil", 1);
  ::setenv("HTTPS_PROXY", "two", 1);
  ::setenv("all_proxy", "three", 1);
  ::setenv("ALL_PROXY", "four", 1);
  ::setenv("NO_PROXY", "a", 1);
  const proxy_settings settings = proxy_settings::from_environment();
  EXPECT_EQ(settings.http + "," + settings.https + "," + settings.all + "," + settings.none,
            ",two,three,a");
  EXPECT_EQ(proxy_settings().all, "");
}

}  // namespace
}  // namespace troupe::http
