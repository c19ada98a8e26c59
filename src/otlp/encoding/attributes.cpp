#include "otlp/encoding/attributes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace troupe::otlp {
namespace {

// `write` adds a value.
template <class Function>
void add(base::json_text& out, std::string_view key, std::string_view kind, Function write) {
  out.open('{').member("key", key).key("value").open('{').key(kind);
  write();
  out.close('}').close('}');
}

}  // namespace

void add_attribute(base::json_text& out, std::string_view key, std::string_view text) {
  add(out, key, "stringValue", [&] { out.value(text); });
}
void add_attribute(base::json_text& out, std::string_view key, std::int64_t number) {
  add(out, key, "intValue", [&] { out.quoted(number); });
}
void add_attribute(base::json_text& out, std::string_view key, bool truth) {
  add(out, key, "boolValue", [&] { out.value(truth); });
}
void add_attribute(base::json_text& out, std::string_view key, double number) {
  add(out, key, "doubleValue", [&] {
    if (std::isfinite(number)) {
      out.value(number);
    } else {  // as the JSON of protocol buffers has it
      out.value(std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
    }
  });
}

base::json_text begin_request(std::string_view part, std::string_view scopes,
                              std::string_view resource) {
  base::json_text out;
  out.open('{').key(part).open('[').open('{').key("resource").raw(resource).key(scopes).open('[');
  return out;
}

std::string end_request(base::json_text out) {
  out.close(']').close('}').close(']').close('}');
  return std::move(out).take();
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
