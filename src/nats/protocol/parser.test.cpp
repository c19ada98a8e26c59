// nats::parser: bytes of a server in any pieces, its limits, and what is refused.
#include "nats/protocol/parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::nats {
namespace {

using event = parser::event;

// One line for each event.
std::string said(std::string_view bytes, std::size_t piece, const parser_limits& limits = {}) {
  parser reads(limits);
  std::string events;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    for (;;) {
      const parser::step step = reads.next(part);
      part.remove_prefix(step.consumed);
      parser::arrived& came = reads.message();
      if (step.outcome == event::need_more) {
        EXPECT_TRUE(part.empty());
        break;
      }
      if (step.outcome == event::broken) return events + "broken: " + reads.text();
      if (step.outcome == event::info) events += "info " + reads.text() + "\n";
      if (step.outcome == event::refused) events += "refused " + reads.text() + "\n";
      if (step.outcome == event::ping) events += "ping\n";
      if (step.outcome == event::pong) events += "pong\n";
      if (step.outcome == event::ok) events += "ok\n";
      if (step.outcome == event::message)
        events += "message " + std::to_string(came.sid) + " " + came.subject + " (" + came.reply +
                  ") [" + came.header + "] " + came.payload + "\n";
    }
  }
  return events;
}

const std::string everything =
    "INFO {\"a\":1}\r\n+OK\r\nPING\r\nPONG\r\n-ERR 'Unknown Protocol Operation'\r\n"
    "MSG foo.bar 9 3\r\nabc\r\nMSG foo 10 reply.to 0\r\n\r\n"
    "HMSG foo 11 12 15\r\nNATS/1.0\r\n\r\nxyz\r\nHMSG f 12 r 12 12\r\nNATS/1.0\r\n\r\n\r\n"
    "msg\tfoo  13   4\r\n\r\n\r\n\r\n";
const std::string heard =
    "info {\"a\":1}\nok\nping\npong\nrefused Unknown Protocol Operation\n"
    "message 9 foo.bar () [] abc\nmessage 10 foo (reply.to) [] \n"
    "message 11 foo () [NATS/1.0\r\n\r\n] xyz\nmessage 12 f (r) [NATS/1.0\r\n\r\n] \n"
    "message 13 foo () [] \r\n\r\n\n";

TEST(nats_parser, reads_each_command_in_pieces_of_any_size) {
  for (std::size_t piece = 1; piece <= everything.size(); ++piece)
    EXPECT_EQ(said(everything, piece), heard) << piece;
}

TEST(nats_parser, refuses_what_is_no_nats_in_pieces_as_at_once) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"\r\n", "a line has no command"},
      {" PING\r\n\r\n", "a line has no command"},
      {"PING\n", "a line does not end as lines do"},
      {"PI\rNG\r\n", "a line has a control character"},
      {std::string("+OK \0\r\n", 7), "a line has a control character"},
      {"HTTP/1.1 400 Bad Request\r\n", "a line has an unknown command"},
      {"PUB a 1\r\n", "a line has an unknown command"},
      {"MSG a 1\r\n", "a message has a wrong number of words"},
      {"MSG a 1 b c 1\r\n", "a message has a wrong number of words"},
      {"MSG a 1 b c d e f g 1\r\n", "a message has a wrong number of words"},
      {"MSG a x 1\r\n", "a message has a wrong number"},
      {"MSG a -1 1\r\n", "a message has a wrong number"},
      {"MSG a +1 1\r\n", "a message has a wrong number"},
      {"MSG a 1 1x\r\n", "a message has a wrong number"},
      {"MSG a 1 -5\r\n", "a message has a wrong number"},
      {"MSG a 1 99999999999999999999\r\n", "a message has a wrong number"},
      {"MSG a 1 18446744073709551615\r\n", "a message is larger than the options allow"},
      {"MSG a 1 3\r\nabcd\r\n", "a message does not end where it should"},
      {"MSG a 1 3\r\nabc\n\r", "a message does not end where it should"},
      {"HMSG a 1 1\r\n", "a message has a wrong number of words"},
      {"HMSG a 1 5 4\r\n", "a message has a wrong number"},
      {"HMSG a 1 b c 4\r\n", "a message has a wrong number"},
      {"HMSG a 1 70000 80000\r\n", "a message is larger than the options allow"},
  };
  for (const auto& [bytes, why] : all) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, bytes.size()})
      EXPECT_EQ(said(bytes, piece), "broken: " + why) << bytes;
  }
}

TEST(nats_parser, keeps_its_limits_at_the_limit_and_one_past_it) {
  parser_limits limits;
  limits.line_bytes = 40;
  limits.info_bytes = 60;
  limits.message_bytes = 10;
  limits.header_bytes = 4;
  const auto line = [](std::string begin, std::size_t bytes) {
    begin.resize(bytes, 'x');
    return begin + "\r\n";
  };
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100}}) {
    // The return belongs to the line.
    EXPECT_EQ(said(line("-ERR ", 39), piece, limits), "refused " + std::string(34, 'x') + "\n");
    EXPECT_EQ(said(line("-ERR ", 40), piece, limits), "broken: a line is too long");
    EXPECT_EQ(said(line("info ", 59), piece, limits), "info " + std::string(54, 'x') + "\n");
    EXPECT_EQ(said(line("INFO ", 60), piece, limits), "broken: a line is too long");
    EXPECT_EQ(said("MSG a 1 10\r\n0123456789\r\n", piece, limits),
              "message 1 a () [] 0123456789\n");
    EXPECT_EQ(said("MSG a 1 11\r\n", piece, limits),
              "broken: a message is larger than the options allow");
    EXPECT_EQ(said("HMSG a 1 4 5\r\n01234\r\n", piece, limits), "message 1 a () [0123] 4\n");
    EXPECT_EQ(said("HMSG a 1 5 5\r\n", piece, limits),
              "broken: a message is larger than the options allow");
  }
}

// Doubling would take up to twice the message, and keep half of that beside it.
TEST(nats_parser, takes_no_more_memory_than_a_large_message_has_bytes) {
  constexpr std::size_t payload = 5'000'000, piece = 16 * 1024, line_end = 2;
  std::string bytes = "MSG a 1 " + std::to_string(payload) + "\r\n" + std::string(payload, 'x');
  bytes += "\r\n";
  parser reads({});
  event last = event::need_more;
  std::size_t capacity = 0, moved = 0;
  for (std::string_view left = bytes; !left.empty();) {
    const parser::step step = reads.next(left.substr(0, piece));
    left.remove_prefix(step.consumed);
    last = step.outcome;
    const std::string& got = reads.message().payload;
    EXPECT_LE(got.capacity(), payload + line_end);
    if (got.capacity() != capacity) moved = got.size();
    capacity = got.capacity();
  }
  EXPECT_EQ(last, event::message);
  EXPECT_EQ(reads.message().payload.size(), payload);
  EXPECT_LE(moved, payload / 2);  // what lay in two places at the last move
}

TEST(nats_parser, is_broken_for_good) {
  parser reads({});
  EXPECT_EQ(reads.next("X\r\nPING\r\n").outcome, event::broken);
  EXPECT_EQ(reads.next("PING\r\n").outcome, event::broken);
  EXPECT_EQ(reads.next("PING\r\n").consumed, 0u);
}

}  // namespace
}  // namespace troupe::nats
