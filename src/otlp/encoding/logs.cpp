#include "otlp/encoding/logs.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

// By OpenTelemetry's data model: the first number of each range.
int severity_of(log::level level) noexcept {
  // trace, debug, info, warning, error; off is none
  constexpr std::array numbers{1, 5, 9, 13, 17, 0};
  return numbers[static_cast<std::size_t>(level)];
}

void add_value(base::json_text& out, const log::record_field& field) {
  if (const auto* natural = std::get_if<std::uint64_t>(&field.value)) {
    // A number that is too large for OTLP's integers is a text, which has all of its digits.
    if (*natural > INT64_MAX) {
      add_attribute(out, field.name, std::string_view(std::to_string(*natural)));
    } else {
      add_attribute(out, field.name, static_cast<std::int64_t>(*natural));
    }
  } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
    add_attribute(out, field.name, *integer);
  } else if (const auto* truth = std::get_if<bool>(&field.value)) {
    add_attribute(out, field.name, *truth);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    add_attribute(out, field.name, *real);
  } else {
    add_attribute(out, field.name, std::string_view(std::get<std::string>(field.value)));
  }
}

void add_attributes(base::json_text& out, const log::record& line) {
  for (const log::record_field& field : line.fields) add_value(out, field);
  if (line.actor == nullptr) return;
  add_attribute(out, "troupe.actor", std::string_view(line.actor));
  add_attribute(out, "troupe.actor_id", static_cast<std::int64_t>(line.actor_id));
}

void add_line(base::json_text& out, const log::record& line) {
  out.open('{').key("timeUnixNano").quoted(line.unix_ns);
  out.key("observedTimeUnixNano").quoted(line.unix_ns);
  out.member("severityNumber", severity_of(line.severity));
  out.member("severityText", log::name_of(line.severity));
  out.key("body").open('{').member("stringValue", line.text).close('}');
  out.key("attributes").open('[');
  add_attributes(out, line);
  out.close(']');
  if (line.trace) {
    out.member("flags", line.trace->sampled ? 1 : 0);
    out.key("traceId").hex(line.trace->trace_id).key("spanId").hex(line.trace->span_id);
  }
  out.close('}');
}

void begin_scope(base::json_text& out, std::string_view logger) {
  out.open('{').key("scope").open('{');
  if (!logger.empty()) out.member("name", logger);
  out.close('}').key("logRecords").open('[');
}

}  // namespace

std::string logs_body(std::string_view resource, const log::record* first) {
  base::json_text out = begin_request("resourceLogs", "scopeLogs", resource);
  const log::record* before = nullptr;
  for (const log::record* line = first; line != nullptr; before = line, line = line->next) {
    if (before == nullptr || before->logger != line->logger) {
      if (before != nullptr) out.close(']').close('}');
      begin_scope(out, line->logger);
    }
    add_line(out, *line);
  }
  if (first != nullptr) out.close(']').close('}');
  return end_request(std::move(out));
}

}  // namespace troupe::otlp
