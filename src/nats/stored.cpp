#include "nats/stored.hpp"

#include <utility>

#include "troupe/json/read.hpp"
#include "troupe/nats/error.hpp"

namespace troupe::nats {
namespace {

struct error_json {
  std::optional<int> code, err_code;
  std::optional<std::string> description;
};
struct stored_json {
  std::optional<error_json> error;
  std::optional<std::string> stream, domain;
  std::optional<std::uint64_t> seq;
  std::optional<bool> duplicate;
};

stored_json parse(const std::string& text) {
  try {
    return json::read<stored_json>(text);
  } catch (const json::json_error&) {
    return {};  // has neither a sequence nor an error
  }
}

}  // namespace

void add_expectations(headers& head, const store_options& chosen) {
  if (!chosen.id.empty()) head.set("Nats-Msg-Id", chosen.id);
  if (!chosen.expected_stream.empty()) head.set("Nats-Expected-Stream", chosen.expected_stream);
  if (!chosen.expected_last_id.empty())
    head.set("Nats-Expected-Last-Msg-Id", chosen.expected_last_id);
  if (chosen.expected_last)
    head.set("Nats-Expected-Last-Sequence", std::to_string(*chosen.expected_last));
  if (chosen.expected_last_of_subject)
    head.set("Nats-Expected-Last-Subject-Sequence",
             std::to_string(*chosen.expected_last_of_subject));
}

stored read_stored(const message& answer) {
  stored_json from = parse(answer.payload);
  if (from.error) {
    const std::string says = from.error->description.value_or("no reason");
    throw stream_error("troupe: nats: the message was not stored: " + says,
                       from.error->code.value_or(0), from.error->err_code.value_or(0));
  }
  if (!from.stream || !from.seq)
    throw error(failure::refused,
                "troupe: nats: the subject's subscriber is no JetStream stream: whether the "
                "message was stored is unknown",
                true);
  stored result;
  result.stream = std::move(*from.stream);
  result.domain = std::move(from.domain).value_or("");
  result.sequence = *from.seq;
  result.duplicate = from.duplicate.value_or(false);
  return result;
}

}  // namespace troupe::nats
