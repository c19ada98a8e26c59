#include "otlp/encoding/logs.hpp"

#include <array>
#include <cstdint>
#include <variant>

#include "base/text/json_string.hpp"
#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

// By OpenTelemetry's data model: the first number of each range.
int severity_of(log::level level) noexcept {
  // trace, debug, info, warning, error; off is none
  constexpr std::array numbers{1, 5, 9, 13, 17, 0};
  return numbers[static_cast<std::size_t>(level)];
}

void add_value(std::string& out, const log::record_field& field) {
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

void add_attributes(std::string& out, const log::record& line) {
  bool is_first = true;
  for (const log::record_field& field : line.fields) {
    if (!is_first) out += ',';
    is_first = false;
    add_value(out, field);
  }
  if (line.actor == nullptr) return;
  if (!is_first) out += ',';
  add_attribute(out, "troupe.actor", std::string_view(line.actor));
  out += ',';
  add_attribute(out, "troupe.actor_id", static_cast<std::int64_t>(line.actor_id));
}

void add_line(std::string& out, const log::record& line) {
  const std::string time = std::to_string(line.unix_ns);
  out += "{\"timeUnixNano\":\"" + time + "\",\"observedTimeUnixNano\":\"" + time;
  out += "\",\"severityNumber\":" + std::to_string(severity_of(line.severity));
  out += ",\"severityText\":\"";
  out += log::name_of(line.severity);
  out += "\",\"body\":{\"stringValue\":";
  base::add_json_string(out, line.text);
  out += "},\"attributes\":[";
  add_attributes(out, line);
  out += ']';
  if (line.trace) {
    out += line.trace->sampled ? ",\"flags\":1" : ",\"flags\":0";
    out += ",\"traceId\":\"";
    add_hex(out, line.trace->trace_id);
    out += "\",\"spanId\":\"";
    add_hex(out, line.trace->span_id);
    out += '"';
  }
  out += '}';
}

void begin_scope(std::string& out, std::string_view logger) {
  out += "{\"scope\":{";
  if (!logger.empty()) {
    out += "\"name\":";
    base::add_json_string(out, logger);
  }
  out += "},\"logRecords\":[";
}

}  // namespace

std::string logs_body(std::string_view resource, const log::record* first) {
  std::string out = "{\"resourceLogs\":[{\"resource\":";
  out += resource;
  out += ",\"scopeLogs\":[";
  const log::record* before = nullptr;
  for (const log::record* line = first; line != nullptr; before = line, line = line->next) {
    if (before != nullptr && before->logger == line->logger) {
      out += ',';
    } else {
      if (before != nullptr) out += "]},";
      begin_scope(out, line->logger);
    }
    add_line(out, *line);
  }
  return out + (first == nullptr ? "]}]}" : "]}]}]}");
}

}  // namespace troupe::otlp
