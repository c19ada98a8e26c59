#include "observe_page/access.hpp"

#include <gtest/gtest.h>

namespace troupe::observe_page {
namespace {

TEST(page_token, is_read_from_basic_and_bearer) {
  EXPECT_EQ(token_of("Bearer abc"), "abc");
  EXPECT_EQ(token_of("BEARER abc def"), "abc def");
  EXPECT_EQ(token_of("Basic dTpw"), "p");        // u:p
  EXPECT_EQ(token_of("basic dTpwOnE="), "p:q");  // u:p:q
  EXPECT_EQ(token_of("Basic Og=="), "");         // :
  for (const char* const none :
       {"", "Bearer", "Basic", "Basic dQ==", "Basic d?pw", "Bear abc", "Basic"})
    EXPECT_EQ(token_of(none), std::nullopt) << none;
}

TEST(page_access, pages_of_other_sites_are_recognized) {
  const std::string_view host = "localhost:8080";
  const request_site own[] = {{"", "", "", host},
                              {"none", "navigate", "", host},
                              {"same-origin", "cors", "", host},
                              {"same-site", "navigate", "", host},
                              {"same-origin", "cors", "http://localhost:8080", host},
                              {"", "", "https://LOCALHOST:8080", host},
                              {"", "", "https://example.org", "example.org:443"},
                              {"", "", "http://[::1]:8080", "[::1]:8080"}};
  for (const request_site& one : own) EXPECT_FALSE(is_of_other_site(one)) << one.origin;
  const request_site other[] = {{"cross-site", "navigate", "", host},
                                {"Cross-Site", "no-cors", "", host},
                                {"same-site", "no-cors", "", host},
                                {"same-origin", "cors", "http://localhost:8081", host},
                                {"", "", "http://localhost", host},
                                {"", "", "http://localhost:8080.example.org", host},
                                {"", "", "null", host},
                                {"", "", "localhost:8080", host},
                                {"", "", "http://", ""}};
  for (const request_site& one : other)
    EXPECT_TRUE(is_of_other_site(one)) << one.fetch_site << " " << one.origin;
}

TEST(page_token, is_the_same_only_as_a_whole) {
  EXPECT_TRUE(is_same("secret", "secret"));
  for (const char* const other : {"", "s", "secre", "secrets", "Secret", "secretsecret", "secreT"})
    EXPECT_FALSE(is_same("secret", other)) << other;
  EXPECT_TRUE(is_same("", ""));
  EXPECT_FALSE(is_same("", "a"));
}

}  // namespace
}  // namespace troupe::observe_page
