// The bytes of a NATS server, which may be hostile: the parser and the protocol_state give the same
// results whether the bytes come in pieces or at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/nats/nats.hpp"

namespace troupe::test {
namespace {

TEST(fuzz_nats, of_what_was_found_is_the_same_in_pieces) {
  const char* const source = std::getenv("TROUPE_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source) /
                                                               "tests/fuzz/nats/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    EXPECT_EQ(nats_difference(std::string((std::istreambuf_iterator<char>(in)), {})), "")
        << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

// Some commands, with some bytes changed.
TEST(fuzz_nats, of_commands_with_some_bytes_changed_is_the_same_in_pieces) {
  const char* const commands[] = {"INFO {\"max_payload\":5}\r\n",
                                  "PING\r\n",
                                  "PONG\r\n",
                                  "+OK\r\n",
                                  "-ERR 'Permissions Violation for Publish to \"svc\"'\r\n",
                                  "-ERR 'Permissions Violation for Subscription to \"a\"'\r\n",
                                  "MSG a 2 3\r\nabc\r\n",
                                  "MSG _INBOX.fuzz.1 1 2\r\nok\r\n",
                                  "MSG b.c 3 back 0\r\n\r\n",
                                  "HMSG _INBOX.fuzz.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                                  "HMSG a 2 18 19\r\nNATS/1.0\r\nA: b\r\n\r\nx\r\n"};
  std::minstd_rand random(28);
  for (int i = 0; i < 20'000; ++i) {
    std::string input(1, static_cast<char>(random()));
    for (std::size_t left = random() % 6; left > 0; --left)
      input += commands[random() % std::size(commands)];
    for (std::size_t changes = random() % 4; changes > 0 && input.size() > 1; --changes)
      input[1 + random() % (input.size() - 1)] = "0123 \r\n'\"aM."[random() % 12];
    ASSERT_EQ(nats_difference(input), "") << input;
  }
}

}  // namespace
}  // namespace troupe::test
