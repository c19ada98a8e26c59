// nats::server_list: addresses, and the order in which they are tried.
#include "nats/protocol/servers.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "troupe/base/error.hpp"

namespace troupe::nats {
namespace {

TEST(nats_servers, are_read_from_addresses) {
  const auto all =
      parse_servers("nats://ada:s3:cret@host:4333, tls://[::1],other/,nats://token@10.0.0.1:1");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].authority(), "host:4333");
  EXPECT_EQ(all[0].user, "ada");
  EXPECT_EQ(all[0].password, "s3:cret");
  EXPECT_FALSE(all[0].secure);
  EXPECT_EQ(all[1].host, "::1");
  EXPECT_EQ(all[1].authority(), "[::1]:4222");
  EXPECT_TRUE(all[1].secure);
  EXPECT_EQ(all[2].authority(), "other:4222");
  EXPECT_EQ(all[3].user, "token");
  for (const char* const bad :
       {"", "nats://", "http://host", "host:", "host:0", "host:65536", "host:x", "[::1", "[::1]x",
        "a,,b", "a b", "a:1:2", "host/path", "nats://u@"})
    EXPECT_THROW(parse_servers(bad), option_error) << bad;
  try {
    parse_servers("nats://ada:secret@host:x");
    ADD_FAILURE();
  } catch (const option_error& failed) {
    EXPECT_EQ(std::string(failed.what()).find("secret"), std::string::npos);
  }
}

TEST(nats_servers, have_credentials_with_codes_of_characters) {
  const auto all = parse_servers("us%20er:p%40s:s%25@host,us er:p@ss%@host,%zz%4:%@host");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].user, "us er");
  EXPECT_EQ(all[0].password, "p@s:s%");
  EXPECT_EQ(all[1].user, "us er");
  EXPECT_EQ(all[1].password, "p@ss%");
  EXPECT_EQ(all[2].user, "%zz%4");
  EXPECT_EQ(all[2].password, "%");
}

TEST(nats_servers, are_tried_in_random_order_the_last_one_at_the_end) {
  server_list list(parse_servers("tls://one.example,two.example,three.example"));
  list.add({"10.0.0.1:4444", "three.example:4222", "no address:1", "", "[::1]:5"});
  EXPECT_EQ(list.size(), 5u);
  list.connected_to(list.next_round().front());
  std::set<std::string> first;
  const std::string last = list.next_round().back().authority();
  for (int i = 0; i < 200; ++i) {
    const auto round = list.next_round();
    ASSERT_EQ(round.size(), 5u);
    EXPECT_EQ(round.back().authority(), last);
    first.insert(round.front().authority());
  }
  EXPECT_EQ(first.size(), 4u);
  for (const server& server : list.next_round()) {
    const bool told = server.host == "10.0.0.1" || server.host == "::1";
    EXPECT_EQ(server.tls_name, told ? "one.example" : "") << server.host;
  }
  std::vector<std::string> many;
  for (int i = 0; i < 2'000; ++i) many.push_back("h" + std::to_string(i));
  list.add(many);
  EXPECT_EQ(list.size(), 1'000u);
}

}  // namespace
}  // namespace troupe::nats
