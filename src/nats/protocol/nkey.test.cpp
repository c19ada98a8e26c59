// nats::nkey: keys as other programs write them.
#include "nats/protocol/nkey.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::nats {
namespace {

// Of the documentation of nkeys.
constexpr const char* seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
constexpr const char* name = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

TEST(nats_nkey, reads_and_writes_seeds) {
  const auto key = nkey::from_seed(seed);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->kind(), key_kind::user);
  EXPECT_EQ(key->public_key(), name);
  EXPECT_EQ(key->seed(), seed);
  EXPECT_EQ(key->sign("nonce").size(), 64u);
  EXPECT_EQ(key->sign("nonce"), key->sign("nonce"));
  EXPECT_NE(key->sign("nonce"), key->sign("other"));
  for (const key_kind kind :
       {key_kind::account, key_kind::server, key_kind::oper, key_kind::user}) {
    const nkey fresh(kind, {1, 2, 3});
    const auto again = nkey::from_seed(fresh.seed());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->kind(), kind);
    EXPECT_EQ(again->public_key(), fresh.public_key());
  }
}

TEST(nats_nkey, refuses_what_is_no_seed) {
  const std::string good = seed;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(nkey::from_seed(bad).has_value()) << i;
    EXPECT_FALSE(nkey::from_seed(good.substr(0, i)).has_value()) << i;
  }
  EXPECT_FALSE(nkey::from_seed(good + "A").has_value());
  EXPECT_FALSE(nkey::from_seed(name).has_value());
  EXPECT_FALSE(nkey::from_seed("sua").has_value());
}

TEST(nats_nkey, encodes_as_the_standards_say) {
  EXPECT_EQ(base32("foobar"), "MZXW6YTBOI");
  EXPECT_EQ(base32("foob"), "MZXW6YQ");
  EXPECT_EQ(base32(""), "");
  EXPECT_EQ(from_base32("MZXW6YTBOI"), "foobar");
  EXPECT_EQ(from_base32("MZXW6YQ"), "foob");
  EXPECT_EQ(from_base32("MZXW6YR"), std::nullopt);  // a bit that belongs to nothing
  EXPECT_EQ(from_base32("MZXW6Y"), std::nullopt);
  EXPECT_EQ(from_base32("mzxw"), std::nullopt);
  EXPECT_EQ(base64url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(base64url("f"), "Zg");
  EXPECT_EQ(crc16("123456789"), 0x31c3);
}

TEST(nats_nkey, finds_credentials_in_their_file) {
  const auto found = credentials::parse(
      "-----BEGIN NATS USER JWT-----\r\neyJ0.eyJq.x-_\r\n------END NATS USER JWT------\r\n\r\n"
      "*** IMPORTANT ***\r\n\r\n-----BEGIN USER NKEY SEED-----\r\nSUAX\r\n"
      "------END USER NKEY SEED------\r\n");
  EXPECT_EQ(found.jwt, "eyJ0.eyJq.x-_");
  EXPECT_EQ(found.seed, "SUAX");
  EXPECT_EQ(credentials::parse("").jwt, "");
  EXPECT_EQ(credentials::parse("-----BEGIN NATS USER JWT-----").jwt, "");
  EXPECT_EQ(seed_in("# a comment\n\nSUAB\nSUAC\n"), "SUAB");
  EXPECT_EQ(seed_in("nothing"), "");
}

}  // namespace
}  // namespace troupe::nats
