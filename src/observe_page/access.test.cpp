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

TEST(page_token, is_the_same_only_as_a_whole) {
  EXPECT_TRUE(is_same("secret", "secret"));
  for (const char* const other : {"", "s", "secre", "secrets", "Secret", "secretsecret", "secreT"})
    EXPECT_FALSE(is_same("secret", other)) << other;
  EXPECT_TRUE(is_same("", ""));
  EXPECT_FALSE(is_same("", "a"));
}

}  // namespace
}  // namespace troupe::observe_page
