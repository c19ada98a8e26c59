#include "otlp/encoding/metrics.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <variant>

#include "base/text/json_string.hpp"
#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

using observe::distribution;
using observe::number_kind;
using observe::number_rows;
using observe::number_unit;
using observe::table_number;
using observe::table_row;

// The shortest text that reads back as the same number, which is finite.
std::string text_of(double number) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}
// OTLP writes 64 bits as a text, for JavaScript's sake.
std::string quoted(auto number) { return '"' + std::to_string(number) + '"'; }

const char* unit_of(number_unit unit) noexcept {
  switch (unit) {
    case number_unit::bytes:
      return "By";
    case number_unit::seconds:
      return "s";
    case number_unit::one:
      break;
  }
  return "1";
}

// The traces of values, beside the buckets to which these values belong by themselves.
std::string exemplars_of(const distribution& spread) {
  std::string text;
  for (const observe::exemplar& seen : spread.exemplars) {
    if (!std::isfinite(seen.value)) continue;
    text += text.empty() ? ",\"exemplars\":[" : ",";
    text += "{\"timeUnixNano\":" + quoted(seen.unix_ns) + ",\"asDouble\":" + text_of(seen.value);
    text += ",\"spanId\":\"";
    add_hex(text, seen.span_id);
    text += "\",\"traceId\":\"";
    add_hex(text, seen.trace_id);
    text += "\"}";
  }
  return text.empty() ? text : text + ']';
}

// Empty if JSON has no such number: an infinity, or none.
std::string sample_of(const distribution& spread) {
  if (!std::isfinite(spread.sum)) return {};
  std::string text = "\"count\":" + quoted(spread.count()) + ",\"sum\":" + text_of(spread.sum);
  text += ",\"bucketCounts\":[";
  for (std::size_t i = 0; i < spread.counts.size(); ++i)
    (text += i == 0 ? "" : ",") += quoted(spread.counts[i]);
  text += "],\"explicitBounds\":[";
  for (std::size_t i = 0; i < spread.bounds.size(); ++i)
    (text += i == 0 ? "" : ",") += text_of(spread.bounds[i]);
  return text + ']' + exemplars_of(spread);
}
std::string sample_of(double number) {
  return std::isfinite(number) ? "\"asDouble\":" + text_of(number) : std::string();
}
std::string sample_of(std::int64_t number) { return "\"asInt\":" + quoted(number); }
std::string sample_of(std::uint64_t number) {
  if (number > INT64_MAX) return sample_of(static_cast<double>(number));
  return "\"asInt\":" + quoted(number);
}

struct moment {
  std::int64_t began_unix_ns, now_unix_ns;
};

// The data points of a column, one for each row.
std::string points_of(const number_rows& table, std::size_t column, const moment& at) {
  std::string points;
  for (const table_row& row : table.rows) {
    const std::string value =
        std::visit([](const auto& number) { return sample_of(number); }, row.values[column]);
    if (value.empty()) continue;
    points += points.empty() ? "{\"attributes\":[" : ",{\"attributes\":[";
    for (std::size_t i = 0; i < row.labels.size(); ++i) {
      if (i != 0) points += ',';
      add_attribute(points, table.labels[i], std::string_view(row.labels[i]));
    }
    points += "],";
    if (table.numbers[column].kind != number_kind::gauge)
      points += "\"startTimeUnixNano\":" + quoted(at.began_unix_ns) + ',';
    points += "\"timeUnixNano\":" + quoted(at.now_unix_ns) + ',' + value + '}';
  }
  return points;
}

void add_metric(std::string& out, const table_number& number, const std::string& points) {
  constexpr std::string_view total = "_total";
  std::string_view name = number.metric;
  if (number.kind == number_kind::counter && name.ends_with(total))
    name.remove_suffix(total.size());
  out += "{\"name\":";
  base::add_json_string(out, name);
  out += ",\"description\":";
  base::add_json_string(out, number.help);
  out += ",\"unit\":\"";
  out += unit_of(number.unit);
  switch (number.kind) {
    case number_kind::counter:
      out += "\",\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,";
      break;
    case number_kind::gauge:
      out += "\",\"gauge\":{";
      break;
    case number_kind::histogram:
      out += "\",\"histogram\":{\"aggregationTemporality\":2,";
      break;
  }
  out += "\"dataPoints\":[" + points + "]}}";
}

}  // namespace

std::string metrics_body(std::string_view resource, const observe::number_tables& all,
                         std::int64_t began_unix_ns, std::int64_t now_unix_ns) {
  std::string out = "{\"resourceMetrics\":[{\"resource\":";
  out += resource;
  out += ",\"scopeMetrics\":[{\"scope\":{\"name\":\"troupe\"},\"metrics\":[";
  bool is_first = true;
  for (const number_rows& table : all.all()) {
    for (std::size_t i = 0; i < table.numbers.size(); ++i) {
      const std::string points = points_of(table, i, {began_unix_ns, now_unix_ns});
      if (points.empty()) continue;
      if (!std::exchange(is_first, false)) out += ',';
      add_metric(out, table.numbers[i], points);
    }
  }
  return out + "]}]}]}";
}

}  // namespace troupe::otlp
