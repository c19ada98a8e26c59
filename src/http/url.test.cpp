#include "troupe/http/url.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "troupe/http/client_error.hpp"

namespace troupe::http {
namespace {

TEST(url, its_parts_are_those_of_the_text) {
  const url at = url::parse("HTTPS://Example.ORG:8443/a/b?c=d#e");
  EXPECT_TRUE(at.secure());
  EXPECT_EQ(at.host(), "example.org");
  EXPECT_EQ(at.port(), 8443);
  EXPECT_EQ(at.target(), "/a/b?c=d");
  EXPECT_EQ(at.authority(), "example.org:8443");
  EXPECT_EQ(at.to_string(), "https://example.org:8443/a/b?c=d");
}

TEST(url, texts_become_those_texts) {
  constexpr std::pair<const char*, const char*> table[] = {
      {"http://a", "http://a/"},
      {"http://a:80/", "http://a/"},
      {"https://a:443", "https://a/"},
      {"http://a:", "http://a/"},
      {"http://a?q", "http://a/?q"},
      {"http://a/#f", "http://a/"},
      {"http://[::1]:8080/x", "http://[::1]:8080/x"},
      {"http://127.0.0.1/a b\xc3\xbc\"<>\\", "http://127.0.0.1/a%20b%C3%BC%22%3C%3E%5C"},
      {"http://a/%41", "http://a/%41"},
  };
  for (const auto& [text, wanted] : table) EXPECT_EQ(url::parse(text).to_string(), wanted) << text;
}

TEST(url, texts_may_be_kept_as_they_are_written) {
  for (const char* target :
       {"/a|b\"<>^{}\\`?c=|\"<>^{}\\`", "/%7c%22?%5e", "/a/./b/../c", "/?", "//a"})
    EXPECT_EQ(url::parse_as_written(std::string("http://a") + target).target(), target);
  EXPECT_EQ(url::parse_as_written("http://a?b").target(), "/?b");
  for (const char* text : {"http://a/b c", "http://a/\xc3\xa4", "http://a/\x7f", "http://a/?\n"})
    EXPECT_THROW(static_cast<void>(url::parse_as_written(text)), client_error) << text;
}

TEST(url, what_is_none_is_refused) {
  for (const char* text : {"",
                           "a",
                           "/a",
                           "//a",
                           "ftp://a",
                           "http:a",
                           "http:///x",
                           "http://",
                           "http://:80",
                           "http://a:0",
                           "http://a:65536",
                           "http://a:-1",
                           "http://a:8x",
                           "http://u@a",
                           "http://u:p@a/",
                           "http://a b/",
                           "http://a\r\nX: y/",
                           "http://a/\r\nX: y",
                           "http://a/\t",
                           "http://[::1",
                           "http://[]/",
                           "http://[g::]/",
                           "http://[::1]x/",
                           "http://\xc3\xbc/",
                           "http://a%00/",
                           "http://a\\b/",
                           "javascript:alert(1)"}) {
    bool refused = false;
    try {
      static_cast<void>(url::parse(text));
    } catch (const client_error& e) {
      refused = e.reason() == client_failure::bad_url;
    }
    EXPECT_TRUE(refused) << text;
  }
  EXPECT_THROW(static_cast<void>(url::parse("http://a/" + std::string(9000, 'x'))), client_error);
}

// The examples of RFC 3986, 5.4, whose scheme has a host.
TEST(url, references_mean_what_the_standard_says) {
  const url base = url::parse("http://a/b/c/d;p?q");
  constexpr std::pair<const char*, const char*> table[] = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {";x", "http://a/b/c/;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"https://b:1/x", "https://b:1/x"},
  };
  for (const auto& [reference, wanted] : table)
    EXPECT_EQ(base.resolve(reference).to_string(), wanted) << reference;
  EXPECT_EQ(url::parse("https://a:9/").resolve("/x").to_string(), "https://a:9/x");
  EXPECT_THROW(static_cast<void>(base.resolve("mailto:x")), client_error);
  EXPECT_THROW(static_cast<void>(base.resolve("/x\r\nSet-Cookie: y")), client_error);
}

}  // namespace
}  // namespace troupe::http
