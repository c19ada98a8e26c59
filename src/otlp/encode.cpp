#include "otlp/encode.hpp"

#include <algorithm>
#include <charconv>
#include <variant>

#include "base/text/json_string.hpp"

namespace troupe::otlp {
namespace {

void add_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    out += digits[byte / 16];
    out += digits[byte % 16];
  }
}

void add_text(std::string& out, std::string_view key, std::string_view text) {
  out += "{\"key\":";
  base::add_json_string(out, key);
  out += ",\"value\":{\"stringValue\":";
  base::add_json_string(out, text);
  out += "}}";
}

void add_attribute(std::string& out, const tasks::span_attribute& attribute) {
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    out += "{\"key\":";
    base::add_json_string(out, attribute.key);
    // OTLP writes 64 bits as a text, for JavaScript's sake.
    out += ",\"value\":{\"intValue\":\"" + std::to_string(*number) + "\"}}";
  } else if (const auto* literal = std::get_if<const char*>(&attribute.value)) {
    add_text(out, attribute.key, *literal == nullptr ? "" : *literal);
  } else {
    add_text(out, attribute.key, std::get<std::string>(attribute.value));
  }
}

// A handler's name is that of its pointer, "&Shop::take".
std::string_view name_of(const tasks::span_record& span) noexcept {
  std::string_view name = span.own_name.empty() ? std::string_view(span.name) : span.own_name;
  if (name.starts_with('&')) name.remove_prefix(1);
  return name;
}

void add_span(std::string& out, const tasks::span_record& span) {
  out += "{\"traceId\":\"";
  add_hex(out, span.at.trace_id);
  out += "\",\"spanId\":\"";
  add_hex(out, span.at.span_id);
  if (std::ranges::any_of(span.parent, [](std::uint8_t byte) { return byte != 0; })) {
    out += "\",\"parentSpanId\":\"";
    add_hex(out, span.parent);
  }
  out += '"';
  if (!span.at.tracestate().empty()) {
    out += ",\"traceState\":";
    base::add_json_string(out, span.at.tracestate());
  }
  out += ",\"flags\":1,\"name\":";
  base::add_json_string(out, name_of(span));
  out += ",\"kind\":" + std::to_string(static_cast<int>(span.kind));
  out += ",\"startTimeUnixNano\":\"" + std::to_string(span.began_unix_ns);
  out += "\",\"endTimeUnixNano\":\"" + std::to_string(span.ended_unix_ns);
  out += "\",\"attributes\":[";
  for (std::size_t i = 0; i < span.attributes.size(); ++i) {
    if (i != 0) out += ',';
    add_attribute(out, span.attributes[i]);
  }
  out += span.failed ? "],\"status\":{\"code\":2}}" : "],\"status\":{}}";
}

}  // namespace

std::string resource_of(const exporter_options& options) {
  std::string out = "{\"attributes\":[";
  add_text(out, "service.name", options.service_name);
  for (const auto& [key, value] : options.attributes) {
    out += ',';
    add_text(out, key, value);
  }
  constexpr std::pair<const char*, const char*> own[] = {{"telemetry.sdk.language", "cpp"},
                                                         {"telemetry.sdk.name", "troupe"},
                                                         {"telemetry.sdk.version", TROUPE_VERSION}};
  for (const auto& [key, value] : own) {
    out += ',';
    add_text(out, key, value);
  }
  return out + "]}";
}

std::string body_of(std::string_view resource, const tasks::span_record* first) {
  std::string out = "{\"resourceSpans\":[{\"resource\":";
  out += resource;
  out += ",\"scopeSpans\":[{\"scope\":{\"name\":\"troupe\"},\"spans\":[";
  for (const tasks::span_record* span = first; span != nullptr; span = span->next) {
    if (span != first) out += ',';
    add_span(out, *span);
  }
  return out + "]}]}]}";
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
