#include "otlp/encoding/metrics_body.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "otlp/encoding/attributes.hpp"

namespace troupe::otlp {
namespace {

using observe::distribution;
using observe::number_kind;
using observe::number_rows;
using observe::number_unit;
using observe::table_number;
using observe::table_row;

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
void add_exemplars(base::json_text& out, const distribution& spread) {
  const auto is_written = [](const observe::exemplar& seen) { return std::isfinite(seen.value); };
  if (std::ranges::none_of(spread.exemplars, is_written)) return;
  out.key("exemplars").open('[');
  for (const observe::exemplar& seen : spread.exemplars) {
    if (!is_written(seen)) continue;
    out.open('{').key("timeUnixNano").quoted(seen.unix_ns).member("asDouble", seen.value);
    out.key("spanId").hex(seen.span_id).key("traceId").hex(seen.trace_id).close('}');
  }
  out.close(']');
}

void add_sample(base::json_text& out, const distribution& spread) {
  out.key("count").quoted(spread.count()).member("sum", spread.sum);
  out.key("bucketCounts").open('[');
  for (const std::uint64_t count : spread.counts) out.quoted(count);
  out.close(']').key("explicitBounds").open('[');
  for (const double bound : spread.bounds) out.value(bound);
  out.close(']');
  add_exemplars(out, spread);
}
void add_sample(base::json_text& out, double number) { out.member("asDouble", number); }
void add_sample(base::json_text& out, std::int64_t number) { out.key("asInt").quoted(number); }
void add_sample(base::json_text& out, std::uint64_t number) {
  if (number > INT64_MAX) return add_sample(out, static_cast<double>(number));
  out.key("asInt").quoted(number);
}

// JSON has neither infinities nor NaN.
bool has_form(const table_row& row, std::size_t column) {
  if (const auto* const spread = std::get_if<distribution>(&row.values[column]))
    return std::isfinite(spread->sum);
  const auto* const number = std::get_if<double>(&row.values[column]);
  return number == nullptr || std::isfinite(*number);
}

struct moment {
  std::int64_t began_unix_ns, now_unix_ns;
};

// The data points of a column, one for each row that has a value.
void add_points(base::json_text& out, const number_rows& table, std::size_t column,
                const moment& at) {
  for (const table_row& row : table.rows) {
    if (!has_form(row, column)) continue;
    out.open('{').key("attributes").open('[');
    for (std::size_t i = 0; i < row.labels.size(); ++i)
      add_attribute(out, table.labels[i], std::string_view(row.labels[i]));
    out.close(']');
    if (table.numbers[column].kind != number_kind::gauge)
      out.key("startTimeUnixNano").quoted(at.began_unix_ns);
    out.key("timeUnixNano").quoted(at.now_unix_ns);
    std::visit([&out](const auto& number) { add_sample(out, number); }, row.values[column]);
    out.close('}');
  }
}

// The object that has the data points, which the caller ends.
void begin_points(base::json_text& out, number_kind kind) {
  constexpr int cumulative = 2;
  switch (kind) {
    case number_kind::counter:
      out.key("sum").open('{').member("aggregationTemporality", cumulative);
      out.member("isMonotonic", true);
      break;
    case number_kind::gauge:
      out.key("gauge").open('{');
      break;
    case number_kind::histogram:
      out.key("histogram").open('{').member("aggregationTemporality", cumulative);
      break;
  }
  out.key("dataPoints").open('[');
}

void add_metric(base::json_text& out, const number_rows& table, std::size_t column,
                const moment& at) {
  constexpr std::string_view total = "_total";
  const table_number& number = table.numbers[column];
  std::string_view name = number.metric;
  if (number.kind == number_kind::counter && name.ends_with(total))
    name.remove_suffix(total.size());
  out.open('{').member("name", name).member("description", number.help);
  out.member("unit", unit_of(number.unit));
  begin_points(out, number.kind);
  add_points(out, table, column, at);
  out.close(']').close('}').close('}');
}

}  // namespace

std::string metrics_body(std::string_view resource, const observe::number_tables& all,
                         std::int64_t began_unix_ns, std::int64_t now_unix_ns) {
  base::json_text out = begin_request("resourceMetrics", "scopeMetrics", resource);
  out.open('{').key("scope").open('{').member("name", "troupe").close('}');
  out.key("metrics").open('[');
  for (const number_rows& table : all.all()) {
    for (std::size_t i = 0; i < table.numbers.size(); ++i) {
      const auto is_written = [i](const table_row& row) { return has_form(row, i); };
      if (std::ranges::any_of(table.rows, is_written))
        add_metric(out, table, i, {began_unix_ns, now_unix_ns});
    }
  }
  out.close(']').close('}');
  return end_request(std::move(out));
}

}  // namespace troupe::otlp
