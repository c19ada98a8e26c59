#include "otlp/encoding/spans_body.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

void add_span_attribute(base::json_text& out, const tasks::span_attribute& attribute) {
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    add_attribute(out, attribute.key, *number);
  } else if (const auto* literal = std::get_if<const char*>(&attribute.value)) {
    add_attribute(out, attribute.key, std::string_view(*literal == nullptr ? "" : *literal));
  } else {
    add_attribute(out, attribute.key, std::string_view(std::get<std::string>(attribute.value)));
  }
}

// A handler's name is the name of its pointer, "&Shop::take".
std::string_view name_of(const tasks::span_record& span) noexcept {
  std::string_view name = span.own_name.empty() ? std::string_view(span.name) : span.own_name;
  if (name.starts_with('&')) name.remove_prefix(1);
  return name;
}

void add_span(base::json_text& out, const tasks::span_record& span) {
  out.open('{').key("traceId").hex(span.at.trace_id).key("spanId").hex(span.at.span_id);
  if (std::ranges::any_of(span.parent, [](std::uint8_t byte) { return byte != 0; }))
    out.key("parentSpanId").hex(span.parent);
  if (!span.at.tracestate().empty()) out.member("traceState", span.at.tracestate());
  out.member("flags", 1).member("name", name_of(span));
  out.member("kind", static_cast<int>(span.kind));
  out.key("startTimeUnixNano").quoted(span.began_unix_ns);
  out.key("endTimeUnixNano").quoted(span.ended_unix_ns).key("attributes").open('[');
  for (const tasks::span_attribute& attribute : span.attributes) add_span_attribute(out, attribute);
  out.close(']').key("status").open('{');
  if (span.failed) out.member("code", 2);
  out.close('}').close('}');
}

}  // namespace

std::string spans_body(std::string_view resource, const tasks::span_record* first) {
  base::json_text out = begin_request("resourceSpans", "scopeSpans", resource);
  out.open('{').key("scope").open('{').member("name", "troupe").close('}').key("spans").open('[');
  for (const tasks::span_record* span = first; span != nullptr; span = span->next)
    add_span(out, *span);
  out.close(']').close('}');
  return end_request(std::move(out));
}

}  // namespace troupe::otlp
