#include "otlp/encode.hpp"

#include <algorithm>
#include <charconv>
#include <variant>

#include "base/text/json_string.hpp"

namespace troupe::otlp {
namespace {

void add_hex(std::string& to, std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    to += digits[byte / 16];
    to += digits[byte % 16];
  }
}

void add_text(std::string& to, std::string_view key, std::string_view text) {
  to += "{\"key\":";
  base::add_json_string(to, key);
  to += ",\"value\":{\"stringValue\":";
  base::add_json_string(to, text);
  to += "}}";
}

void add_attribute(std::string& to, const tasks::span_attribute& one) {
  if (const auto* number = std::get_if<std::int64_t>(&one.value)) {
    to += "{\"key\":";
    base::add_json_string(to, one.key);
    // OTLP writes 64 bits as a text, for JavaScript's sake.
    to += ",\"value\":{\"intValue\":\"" + std::to_string(*number) + "\"}}";
  } else if (const auto* literal = std::get_if<const char*>(&one.value)) {
    add_text(to, one.key, *literal == nullptr ? "" : *literal);
  } else {
    add_text(to, one.key, std::get<std::string>(one.value));
  }
}

// A handler's name is that of its pointer, "&Shop::take".
std::string_view name_of(const tasks::span_record& one) noexcept {
  std::string_view name = one.own_name.empty() ? std::string_view(one.name) : one.own_name;
  if (name.starts_with('&')) name.remove_prefix(1);
  return name;
}

void add_span(std::string& to, const tasks::span_record& one) {
  to += "{\"traceId\":\"";
  add_hex(to, one.at.trace_id);
  to += "\",\"spanId\":\"";
  add_hex(to, one.at.span_id);
  if (std::ranges::any_of(one.parent, [](std::uint8_t byte) { return byte != 0; })) {
    to += "\",\"parentSpanId\":\"";
    add_hex(to, one.parent);
  }
  to += "\",\"flags\":1,\"name\":";
  base::add_json_string(to, name_of(one));
  to += ",\"kind\":" + std::to_string(static_cast<int>(one.kind));
  to += ",\"startTimeUnixNano\":\"" + std::to_string(one.began_unix_ns);
  to += "\",\"endTimeUnixNano\":\"" + std::to_string(one.ended_unix_ns);
  to += "\",\"attributes\":[";
  for (std::size_t i = 0; i < one.attributes.size(); ++i) {
    if (i != 0) to += ',';
    add_attribute(to, one.attributes[i]);
  }
  to += one.failed ? "],\"status\":{\"code\":2}}" : "],\"status\":{}}";
}

}  // namespace

std::string resource_of(const exporter_options& options) {
  std::string made = "{\"attributes\":[";
  add_text(made, "service.name", options.service_name);
  for (const auto& [key, value] : options.attributes) {
    made += ',';
    add_text(made, key, value);
  }
  constexpr std::pair<const char*, const char*> own[] = {{"telemetry.sdk.language", "cpp"},
                                                         {"telemetry.sdk.name", "troupe"},
                                                         {"telemetry.sdk.version", TROUPE_VERSION}};
  for (const auto& [key, value] : own) {
    made += ',';
    add_text(made, key, value);
  }
  return made + "]}";
}

std::string body_of(std::string_view resource, const tasks::span_record* first) {
  std::string made = "{\"resourceSpans\":[{\"resource\":";
  made += resource;
  made += ",\"scopeSpans\":[{\"scope\":{\"name\":\"troupe\"},\"spans\":[";
  for (const tasks::span_record* one = first; one != nullptr; one = one->next) {
    if (one != first) made += ',';
    add_span(made, *one);
  }
  return made + "]}]}]}";
}

// {"partialSuccess":{"rejectedSpans":"3","errorMessage":"why"}}; the number may lack its quotes.
std::uint64_t rejected_in(std::string_view answer, std::uint64_t most) noexcept {
  constexpr std::string_view key = "\"rejectedSpans\"";
  const std::size_t at = answer.find(key);
  if (at == std::string_view::npos) return 0;
  answer.remove_prefix(at + key.size());
  const std::size_t digit = answer.find_first_not_of(" \t\r\n:\"");
  if (digit == std::string_view::npos) return 0;
  answer.remove_prefix(digit);
  std::uint64_t number = 0;
  const auto read = std::from_chars(answer.data(), answer.data() + answer.size(), number);
  return read.ec == std::errc() ? std::min(number, most) : 0;
}

}  // namespace troupe::otlp
