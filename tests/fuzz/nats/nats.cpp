#include "fuzz/nats/nats.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

#include "nats/protocol/protocol_state.hpp"

namespace troupe::test {
namespace {

using nats::happened;
using nats::parser;
using nats::protocol_state;

std::string text_of(const happened& one) {
  std::string made = std::to_string(static_cast<int>(one.outcome)) + " " +
                     std::to_string(one.number) + (one.last ? " last " : " ") + one.text + " " +
                     one.message.subject + " (" + one.message.reply + ") " + one.message.payload;
  for (const auto& [name, value] : one.message.head) made += " [" + name + ": " + value + "]";
  for (const std::uint64_t number : one.numbers) made += " " + std::to_string(number);
  return made + "\n";
}

std::string report_of(std::string_view bytes, std::size_t piece) {
  nats::parser_limits limits;
  limits.line_bytes = 200;
  limits.info_bytes = 400;
  limits.header_bytes = 100;
  limits.message_bytes = 300;
  parser reads(limits);
  protocol_state talk;
  talk.name_inbox("fuzz");
  talk.begin({});
  talk.subscribe("a", "", 2);
  talk.subscribe("b.*", "q", 0);
  for (std::uint64_t i = 1; i <= 3; ++i) talk.request(i, "svc", nullptr, "x");
  talk.ping(9);
  std::string sent, said;
  talk.take(sent);
  std::map<std::uint64_t, int> answers;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    for (parser::step step{parser::event::ok, 0}; step.outcome != parser::event::need_more;) {
      step = reads.next(part);
      part.remove_prefix(step.consumed);
      const happened one = talk.receive(step.outcome, reads);
      if (one.outcome != happened::kind::nothing) said += text_of(one);
      if (one.outcome == happened::kind::answer && ++answers[one.number] > 1)
        return "a request has two answers";
      if (one.message.payload.size() > limits.message_bytes) return "a message is too large";
      if (one.outcome == happened::kind::broken) bytes = {};
      if (one.outcome == happened::kind::broken) break;
    }
  }
  talk.take(sent);
  said += "sent " + sent;
  const protocol_state::losses lost = talk.end();
  for (const std::uint64_t number : lost.requests) {
    if (++answers[number] > 1) return "a request was answered, and lost";
  }
  return said + " lost " + std::to_string(lost.requests.size());
}

}  // namespace

std::string nats_difference(std::string_view input) {
  if (input.empty()) return "";
  const std::size_t piece = static_cast<unsigned char>(input.front()) % 32 + std::size_t{1};
  input.remove_prefix(1);
  const std::string at_once = report_of(input, input.size() + 1),
                    in_pieces = report_of(input, piece);
  return at_once == in_pieces ? "" : "at once:\n" + at_once + "in pieces:\n" + in_pieces;
}

}  // namespace troupe::test
