#include "otlp/encoding/attributes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text/json_string.hpp"

namespace troupe::otlp {
namespace {

void begin_attribute(std::string& out, std::string_view key, std::string_view kind) {
  out += "{\"key\":";
  base::add_json_string(out, key);
  ((out += ",\"value\":{\"") += kind) += "\":";
}

}  // namespace

void add_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    out += digits[byte / 16];
    out += digits[byte % 16];
  }
}

void add_attribute(std::string& out, std::string_view key, std::string_view text) {
  begin_attribute(out, key, "stringValue");
  base::add_json_string(out, text);
  out += "}}";
}

void add_attribute(std::string& out, std::string_view key, std::int64_t number) {
  begin_attribute(out, key, "intValue");
  // OTLP writes 64 bits as a text, for JavaScript's sake.
  out += '"' + std::to_string(number) + "\"}}";
}

void add_attribute(std::string& out, std::string_view key, bool truth) {
  begin_attribute(out, key, "boolValue");
  out += truth ? "true}}" : "false}}";
}

void add_attribute(std::string& out, std::string_view key, double number) {
  begin_attribute(out, key, "doubleValue");
  if (std::isfinite(number)) {
    std::array<char, 32> digits;
    out.append(digits.data(),
               std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  } else {  // as the JSON of protocol buffers has it
    out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
  out += "}}";
}

// {"partialSuccess":{"rejectedSpans":"3","errorMessage":"why"}}; the number may lack its quotes.
std::uint64_t rejected_in(std::string_view answer, std::string_view key,
                          std::uint64_t most) noexcept {
  std::size_t at = answer.find(key);
  if (at == std::string_view::npos || at == 0 || answer[at - 1] != '"') return 0;
  at += key.size();
  if (at >= answer.size() || answer[at] != '"') return 0;
  answer.remove_prefix(at + 1);
  const std::size_t digit = answer.find_first_not_of(" \t\r\n:\"");
  if (digit == std::string_view::npos) return 0;
  answer.remove_prefix(digit);
  std::uint64_t number = 0;
  const auto read = std::from_chars(answer.data(), answer.data() + answer.size(), number);
  return read.ec == std::errc() ? std::min(number, most) : 0;
}

}  // namespace troupe::otlp
