#include "troupe/http/client/cookie_jar.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "http/client/cookies/set_cookie.hpp"
#include "troupe/base/error.hpp"

namespace troupe::http {
namespace {

using namespace std::chrono_literals;
using time_point = cookie_jar::time_point;

constexpr time_point start{1'700'000'000s};

url at(std::string_view text) { return url::parse(text); }

// What a jar with this one cookie sends; "refused" if it is not kept.
std::string sent(const char* from, const char* set_cookie, const char* to,
                 time_point later = start) {
  const cookie_jar jar;
  if (!jar.store(at(from), set_cookie, start)) return "refused";
  return jar.field_for(at(to), request_site::same, "GET", later);
}

TEST(http_cookie_jar, a_cookie_goes_back_to_its_host_and_path) {
  EXPECT_EQ(sent("http://a.org/", "a=1", "http://a.org/x"), "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1", "http://b.org/"), "");
  EXPECT_EQ(sent("http://a.org/", "a=1", "http://x.a.org/"), "");
  EXPECT_EQ(sent("http://a.org:81/", "a=1", "http://a.org:82/"), "a=1");
  EXPECT_EQ(sent("http://a.org/d/e?q=/f/g", "a=1", "http://a.org/d"), "a=1");
  EXPECT_EQ(sent("http://a.org/d/e", "a=1", "http://a.org/d/x?y"), "a=1");
  EXPECT_EQ(sent("http://a.org/d/e", "a=1", "http://a.org/dd"), "");
  EXPECT_EQ(sent("http://a.org/d/e", "a=1; Path=/", "http://a.org/"), "a=1");
  EXPECT_EQ(sent("http://a.org/d/e", "a=1; Path=x", "http://a.org/"), "");
  EXPECT_EQ(sent("http://a.org/", "a=1; Path=/d/", "http://a.org/d"), "");
  EXPECT_EQ(sent("http://a.org/", "a=1; Path=/d/", "http://a.org/d/"), "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1; Path=/d; Path=/", "http://a.org/"), "a=1");
}

TEST(http_cookie_jar, a_domain_is_the_host_or_above_it) {
  EXPECT_EQ(sent("http://x.a.org/", "a=1; Domain=a.org", "http://a.org/"), "a=1");
  EXPECT_EQ(sent("http://x.a.org/", "a=1; Domain=.A.ORG", "http://y.z.a.org/"), "a=1");
  EXPECT_EQ(sent("http://x.a.org/", "a=1; Domain=a.org", "http://aa.org/"), "");
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=x.a.org", "http://x.a.org/"), "refused");
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=b.org", "http://b.org/"), "refused");
  EXPECT_EQ(sent("http://xa.org/", "a=1; Domain=a.org", "http://a.org/"), "refused");
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=", "http://a.org/"), "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=", "http://x.a.org/"), "");
}

TEST(http_cookie_jar, nobody_owns_a_public_suffix_or_an_address) {
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=org", "http://b.org/"), "refused");
  EXPECT_EQ(sent("http://a.org/", "a=1; Domain=org.", "http://b.org/"), "refused");
  EXPECT_EQ(sent("http://a.org./", "a=1; Domain=org.", "http://b.org./"), "refused");
  EXPECT_EQ(sent("http://10.0.0.1/", "a=1; Domain=0.0.1", "http://9.0.0.1/"), "refused");
  EXPECT_EQ(sent("http://10.0.0.1/", "a=1; Domain=10.0.0.1", "http://10.0.0.1/"), "a=1");
  EXPECT_EQ(sent("http://[::1]/", "a=1", "http://[::1]/"), "a=1");
  // One label that is the host itself is a cookie of that host alone.
  EXPECT_EQ(sent("http://localhost/", "a=1; Domain=localhost", "http://localhost/"), "a=1");
  EXPECT_EQ(sent("http://localhost/", "a=1; Domain=localhost", "http://x.localhost/"), "");
  cookie_limits knows;
  knows.is_public_suffix = [](std::string_view domain) { return domain == "co.uk"; };
  const cookie_jar jar(knows);
  EXPECT_FALSE(jar.store(at("http://a.co.uk/"), "a=1; Domain=co.uk", start));
  EXPECT_TRUE(jar.store(at("http://x.a.co.uk/"), "a=1; Domain=a.co.uk", start));
}

TEST(http_cookie_jar, secure_cookies_and_prefixes) {
  EXPECT_EQ(sent("https://a.org/", "a=1; Secure", "https://a.org/"), "a=1");
  EXPECT_EQ(sent("https://a.org/", "a=1; Secure", "http://a.org/"), "");
  EXPECT_EQ(sent("http://a.org/", "a=1; Secure", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "__Secure-a=1", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "__SECURE-a=1; Secure", "https://a.org/"), "__SECURE-a=1");
  EXPECT_EQ(sent("https://a.org/d/", "__Host-a=1; Secure; Path=/", "https://a.org/"), "__Host-a=1");
  EXPECT_EQ(sent("https://a.org/", "__host-a=1; Secure; Path=/d", "https://a.org/d"), "refused");
  EXPECT_EQ(sent("https://a.org/d/", "__Host-a=1; Secure", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "__Host-a=1; Secure; Path=/; Domain=a.org", "https://a.org/"),
            "refused");
  EXPECT_EQ(sent("https://a.org/", "=__Host-a=1; Secure; Path=/", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "__Secure-a; Secure", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "a=1; SameSite=None", "https://a.org/"), "refused");
  EXPECT_EQ(sent("https://a.org/", "a=1; SameSite=None; Secure", "https://a.org/"), "a=1");
  EXPECT_EQ(sent("http://a.org/", "=v", "http://a.org/"), "v");
}

// Who can write to the connection of http://x.a.org must not decide which session https uses.
TEST(http_cookie_jar, no_answer_without_tls_hides_a_secure_cookie) {
  const cookie_jar jar;
  EXPECT_TRUE(jar.store(at("https://a.org/"), "id=1; Domain=a.org; Path=/; Secure", start));
  EXPECT_FALSE(jar.store(at("http://a.org/"), "id=2; Domain=a.org; Path=/", start));
  EXPECT_FALSE(jar.store(at("http://x.a.org/"), "id=2; Path=/login", start));
  EXPECT_TRUE(jar.store(at("http://a.org/"), "other=2; Path=/", start));
  EXPECT_EQ(jar.field_for(at("https://x.a.org/"), request_site::same, "GET", start), "id=1");
}

TEST(http_cookie_jar, cookies_expire) {
  EXPECT_EQ(sent("http://a.org/", "a=1; Max-Age=10", "http://a.org/", start + 9s), "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1; Max-Age=10", "http://a.org/", start + 10s), "");
  EXPECT_EQ(sent("http://a.org/", "a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:01 GMT",
                 "http://a.org/", start + 9s),
            "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1; Max-Age=x; Max-Age=99999999999999999999", "http://a.org/",
                 start + 399 * 24h),
            "a=1");
  EXPECT_EQ(sent("http://a.org/", "a=1; Max-Age=99999999999999999999", "http://a.org/",
                 start + 400 * 24h),
            "");
  const cookie_jar jar;
  for (const char* gone : {"a=; Max-Age=0", "a=; Max-Age=-7", "a=; Max-Age=-99999999999999999999",
                           "a=; Expires=Thu, 01-Jan-1970 00:00:00 GMT"}) {
    EXPECT_TRUE(jar.store(at("http://a.org/"), "a=1", start));
    EXPECT_EQ(jar.size(), 1u);
    EXPECT_TRUE(jar.store(at("http://a.org/"), gone, start)) << gone;
    EXPECT_EQ(jar.size(), 0u) << gone;
  }
}

TEST(http_cookie_jar, reads_dates_as_browsers_do) {
  const time_point wanted(784'111'777s);
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06-Nov-1994 08:49:37 GMT", "6 november 94 8:49:37",
        "1994 Nov 6 08:49:37 +0700", "Sun,06/Nov/1994;08:49:37"})
    EXPECT_EQ(read_cookie_date(text), wanted) << text;
  for (const char* text :
       {"", "Sun, 06 Nov 1994", "Sun, 31 Feb 1994 08:49:37 GMT", "06 Nov 1994 24:49:37",
        "06 Nov 1994 08:60:37", "06 Nov 1600 08:49:37", "6 Nov 8:49", "06 Nox 1994 08:49:37",
        "106 Nov 19945 08:49:37", "0 Nov 1994 08:49:37"})
    EXPECT_EQ(read_cookie_date(text), std::nullopt) << text;
  EXPECT_EQ(read_cookie_date("1 Jan 9999 00:00:00"), read_cookie_date("1 Jan 2200 00:00:00"));
}

TEST(http_cookie_jar, site_of_the_request) {
  const cookie_jar jar;
  for (const char* header : {"s=1; Secure; SameSite=Strict", "l=1; Secure; SameSite=Lax",
                             "n=1; Secure; SameSite=None", "d=1; Secure; SameSite=x"})
    EXPECT_TRUE(jar.store(at("https://a.org/"), header, start));
  const auto to = [&](request_site site, const char* method) {
    return jar.field_for(at("https://a.org/"), site, method, start);
  };
  EXPECT_EQ(to(request_site::same, "POST"), "s=1; l=1; n=1; d=1");
  EXPECT_EQ(to(request_site::cross, "GET"), "l=1; n=1; d=1");
  EXPECT_EQ(to(request_site::cross, "POST"), "n=1; d=1");
  EXPECT_TRUE(same_site_as(at("http://a.org/"), at("http://x.a.org:81/y")));
  EXPECT_FALSE(same_site_as(at("http://a.org/"), at("https://a.org/")));
  EXPECT_FALSE(same_site_as(at("http://y.a.org/"), at("http://x.a.org/")));
  EXPECT_FALSE(same_site_as(at("http://1.2.3.4/"), at("http://9.1.2.3.4/")));
}

TEST(http_cookie_jar, longer_paths_and_older_cookies_come_first) {
  const cookie_jar jar;
  for (const char* header : {"a=1; Path=/", "b=1; Path=/d/e", "c=1; Path=/", "d=1; Path=/d"})
    EXPECT_TRUE(jar.store(at("http://a.org/"), header, start));
  EXPECT_TRUE(jar.store(at("http://a.org/"), "a=2; Path=/", start));
  EXPECT_EQ(jar.field_for(at("http://a.org/d/e"), request_site::same, "GET", start),
            "b=1; d=1; a=2; c=1");
}

TEST(http_cookie_jar, refuses_what_is_no_cookie) {
  for (const char* text : {"", "=", ";", "a=\x01", "a=1; Path=/\x7f", "a=b\tc", "a=\r\nX: y"})
    EXPECT_EQ(sent("http://a.org/", text, "http://a.org/"), "refused") << text;
}

TEST(http_cookie_jar, limits_hold_at_the_limit_and_one_past_it) {
  cookie_limits few;
  few.cookies = 4;
  few.per_domain = 3;
  few.cookie_bytes = 8;
  few.attribute_bytes = 5;
  few.field_bytes = 14;
  const cookie_jar jar(few);
  const auto keep = [&](const char* from, const char* text) {
    return jar.store(at(from), text, start);
  };
  EXPECT_TRUE(keep("http://a.org/", "a=1234567"));
  EXPECT_FALSE(keep("http://a.org/", "a=12345678"));
  EXPECT_TRUE(keep("http://a.org/", "p=1; Path=/1234"));
  EXPECT_TRUE(keep("http://a.org/", "q=1; Path=/12345"));  // the path is ignored
  EXPECT_EQ(jar.field_for(at("http://a.org/"), request_site::same, "GET", start), "a=1234567; q=1");
  EXPECT_TRUE(keep("http://a.org/", "r=12"));  // replaces the one that was used the longest ago
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(jar.field_for(at("http://a.org/1234"), request_site::same, "GET", start),
            "a=1234567; q=1");  // 14 bytes; "; r=12" would be more
  EXPECT_TRUE(keep("http://b.org/", "b=1"));
  EXPECT_EQ(jar.size(), 4u);
  EXPECT_TRUE(keep("http://c.org/", "c=1"));
  EXPECT_EQ(jar.size(), 4u);
  std::string left;
  for (const kept_cookie& cookie : jar.all(start)) left += cookie.name;
  EXPECT_EQ(left, "aqbc");
  for (std::size_t cookie_limits::*const which :
       {&cookie_limits::cookies, &cookie_limits::per_domain, &cookie_limits::cookie_bytes,
        &cookie_limits::attribute_bytes, &cookie_limits::field_bytes}) {
    cookie_limits none;
    none.*which = 0;
    EXPECT_THROW(cookie_jar{none}, option_error);
  }
}

TEST(http_cookie_jar, makes_room_by_what_has_expired_and_keeps_secure_cookies) {
  cookie_limits few;
  few.per_domain = 2;
  const cookie_jar jar(few);
  const url from = at("https://a.org/");
  EXPECT_TRUE(jar.store(from, "old=1; Secure; Max-Age=5", start));
  EXPECT_TRUE(jar.store(from, "s=1; Secure", start));
  EXPECT_TRUE(jar.store(from, "x=1", start + 6s));
  EXPECT_EQ(jar.field_for(from, request_site::same, "GET", start + 6s), "s=1; x=1");
  EXPECT_TRUE(jar.store(from, "y=1", start + 6s));
  EXPECT_EQ(jar.field_for(from, request_site::same, "GET", start + 6s), "s=1; y=1");
}

TEST(http_cookie_jar, is_saved_and_loaded_as_text) {
  const cookie_jar jar;
  EXPECT_TRUE(jar.store(at("https://x.a.org/d/"),
                        "a=1; Domain=a.org; Max-Age=100; Secure; HttpOnly; SameSite=Strict",
                        start));
  EXPECT_TRUE(jar.store(at("http://b.org/"), "b=x y=z", start));
  EXPECT_EQ(jar.save(false, start),
            "# Netscape HTTP Cookie File\n#SameSite=Strict\n"
            "#HttpOnly_.a.org\tTRUE\t/d\tTRUE\t1700000100\ta\t1\n");
  const std::string text = jar.save(true, start);
  EXPECT_TRUE(text.ends_with("\nb.org\tFALSE\t/\tFALSE\t0\tb\tx y=z\n")) << text;
  const cookie_jar other;
  EXPECT_EQ(other.load(text, start), 2u);
  EXPECT_EQ(other.save(true, start), text);
  EXPECT_EQ(other.load(text, start + 100s), 1u);
  other.end_session();
  EXPECT_EQ(other.size(), 1u);
  other.clear();
  EXPECT_EQ(other.save(true, start), "# Netscape HTTP Cookie File\n");
}

TEST(http_cookie_jar, loads_nothing_that_no_server_could_set) {
  const cookie_jar jar;
  for (const char* line :
       {"org\tTRUE\t/\tFALSE\t0\ta\t1", ".1.2.3.4\tTRUE\t/\tFALSE\t0\ta\t1",
        "a.org\tFALSE\t/\tFALSE\t0\t__Secure-a\t1", ".a.org\tTRUE\t/\tTRUE\t0\t__Host-a\t1",
        "a.org\tFALSE\tx\tFALSE\t0\ta\t1", "a.org\tFALSE\t/\tFALSE\t0\ta;b\t1",
        "a.org\tFALSE\t/\tFALSE\t0\ta\t1;b=2", "a.org\tFALSE\t/\tFALSE\t1\ta\t1"})
    EXPECT_EQ(jar.load(line, start), 0u) << line;
  for (const char* line :
       {"x", "a.org\tFALSE\t/\tFALSE\t0\ta", "a.org\tFALSE\t/\tFALSE\t0\ta\t1\t2",
        "a.org\tfalse\t/\tFALSE\t0\ta\t1", "a.org\tFALSE\t/\tFALSE\t-1\ta\t1",
        "a.org\tFALSE\t/\tFALSE\t99999999999999999999\ta\t1", "a.org\tFALSE\t/\tFALSE\tx\ta\t1"}) {
    const std::string text = std::string("b.org\tFALSE\t/\tFALSE\t0\ta\t1\n") + line;
    EXPECT_THROW(jar.load(text, start), option_error) << line;
    EXPECT_EQ(jar.size(), 0u);
  }
  EXPECT_EQ(jar.load("\n# text\r\na.org\tFALSE\t/\tFALSE\t253402257600\ta\t1\r\n", start), 1u);
  EXPECT_EQ(jar.field_for(at("http://a.org/"), request_site::same, "GET", start), "a=1");
}

// Random orders of the operations, with few names: a jar never holds more than its limits, and
// sends no name twice for one domain and path.
TEST(http_cookie_jar, any_thread_may_use_it) {
  cookie_limits few;
  few.cookies = 20;
  few.per_domain = 7;
  const cookie_jar jar(few);
  const auto work = [&jar](unsigned seed) {
    for (unsigned i = 0; i < 2'000; ++i) {
      seed = seed * 1'664'525 + 1'013'904'223;
      const std::string host = "http://h" + std::to_string(seed >> 28) + ".a.org/";
      const std::string name = std::to_string((seed >> 20) % 11);
      jar.store(at(host), name + "=1" + (seed & 4096 ? "; Domain=a.org" : "; Max-Age=5"), start);
      static_cast<void>(jar.field_for(at(host), request_site::same, "GET", start));
      if (i % 512 == 0) jar.end_session();
      if (jar.size() > 20) return false;
    }
    return true;
  };
  bool first_worked = false, second_worked = false;
  std::thread first([&] { first_worked = work(1); }), second([&] { second_worked = work(2); });
  first.join();
  second.join();
  EXPECT_TRUE(first_worked && second_worked);
  std::set<std::string> seen;
  for (const kept_cookie& left : jar.all(start))
    EXPECT_TRUE(seen.insert(left.name + " " + left.domain).second);
}

}  // namespace
}  // namespace troupe::http
