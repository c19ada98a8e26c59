#include "troupe/http/values/accept.hpp"

#include <gtest/gtest.h>

#include <array>

namespace troupe::http {
namespace {

TEST(http_accept, the_most_specific_range_says_the_quality) {
  const std::string_view accept = "text/*;q=0.3, text/html;level=1;q=0.7, */*;q=0.5, image/png;q=0";
  EXPECT_EQ(quality_of_type(accept, "text/html"), 700u);
  EXPECT_EQ(quality_of_type(accept, "TEXT/plain"), 300u);
  EXPECT_EQ(quality_of_type(accept, "application/json"), 500u);
  EXPECT_EQ(quality_of_type(accept, "image/png"), 0u);
  EXPECT_EQ(quality_of_type("", "image/png"), 1'000u);
  EXPECT_EQ(quality_of_type(" ", "image/png"), 1'000u);
  EXPECT_EQ(quality_of_type("text/html", "image/png"), 0u);
}

TEST(http_accept, malformed_ranges_count_as_absent) {
  for (const char* q : {"2", "1.5", "1.001", "0.1234", "-1", "x", ".5", "1x", "0.x"}) {
    const std::string accept = "text/html;q=" + std::string(q) + ", text/*;q=0.2";
    EXPECT_EQ(quality_of_type(accept, "text/html"), 200u) << accept;
  }
  for (const char* q : {"1", "1.", "1.0", "1.000"}) {
    EXPECT_EQ(quality_of_type("a/b;q=" + std::string(q), "a/b"), 1'000u) << q;
  }
  EXPECT_EQ(quality_of_type("a/b;q=0.001", "a/b"), 1u);
  EXPECT_EQ(quality_of_type(",,;,=,\",a/b", "a/b"), 0u);
  EXPECT_EQ(quality_of_type("a/b;x=\"q=0,;q=0\\\"\";q=0.4", "a/b"), 400u);
  EXPECT_EQ(quality_of_type("a/b;x=\"\\", "a/b"), 1'000u);
}

TEST(http_accept, codings) {
  EXPECT_EQ(quality_of_coding("gzip, br;q=0.5", "br"), 500u);
  EXPECT_EQ(quality_of_coding("gzip, br;q=0.5", "zstd"), 0u);
  EXPECT_EQ(quality_of_coding("gzip, br;q=0.5", "identity"), 1'000u);
  EXPECT_EQ(quality_of_coding("*;q=0.2, gzip;q=0", "br"), 200u);
  EXPECT_EQ(quality_of_coding("*;q=0.2, gzip;q=0", "gzip"), 0u);
  EXPECT_EQ(quality_of_coding("*;q=0", "identity"), 0u);
  EXPECT_EQ(quality_of_coding("identity;q=0", "identity"), 0u);
  EXPECT_EQ(quality_of_coding("", "gzip"), 0u);
  EXPECT_EQ(quality_of_coding("GZIP", "gzip"), 1'000u);
}

TEST(http_accept, the_preferred_type) {
  constexpr std::array<std::string_view, 3> types{"text/plain", "application/problem+json",
                                                  "application/json"};
  EXPECT_EQ(preferred_type("", types), 0u);
  EXPECT_EQ(preferred_type("*/*", types), 0u);
  EXPECT_EQ(preferred_type("application/json", types), 2u);
  EXPECT_EQ(preferred_type("application/json, text/plain, */*", types), 2u);
  EXPECT_EQ(preferred_type("text/plain, application/json", types), 0u);
  EXPECT_EQ(preferred_type("text/plain;q=0.5, application/json", types), 2u);
  EXPECT_EQ(preferred_type("application/*", types), 1u);
  EXPECT_EQ(preferred_type("text/html, */*;q=0.1", types), 0u);
  EXPECT_EQ(preferred_type("image/png", types), std::nullopt);
  EXPECT_EQ(preferred_type("text/plain", {}), std::nullopt);
}

}  // namespace
}  // namespace troupe::http
