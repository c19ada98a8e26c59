#include "otlp/encoding/spans.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "base/text/json_string.hpp"
#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

void add_span_attribute(std::string& out, const tasks::span_attribute& attribute) {
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    add_attribute(out, attribute.key, *number);
  } else if (const auto* literal = std::get_if<const char*>(&attribute.value)) {
    add_attribute(out, attribute.key, std::string_view(*literal == nullptr ? "" : *literal));
  } else {
    add_attribute(out, attribute.key, std::string_view(std::get<std::string>(attribute.value)));
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
    add_span_attribute(out, span.attributes[i]);
  }
  out += span.failed ? "],\"status\":{\"code\":2}}" : "],\"status\":{}}";
}

}  // namespace

std::string spans_body(std::string_view resource, const tasks::span_record* first) {
  std::string out = "{\"resourceSpans\":[{\"resource\":";
  out += resource;
  out += ",\"scopeSpans\":[{\"scope\":{\"name\":\"troupe\"},\"spans\":[";
  for (const tasks::span_record* span = first; span != nullptr; span = span->next) {
    if (span != first) out += ',';
    add_span(out, *span);
  }
  return out + "]}]}]}";
}

}  // namespace troupe::otlp
