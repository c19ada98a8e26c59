#include "runtime/observing/numbers/numbers_json.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace troupe::observing {
namespace {

using observe::distribution;

const distribution* bounds_of(const observe::number_rows& table, std::size_t column) {
  for (const observe::table_row& row : table.rows) {
    if (const auto* const found = std::get_if<distribution>(&row.values[column])) return found;
  }
  return nullptr;
}

void write_number(json_text& out, const observe::number_rows& table, std::size_t column) {
  const observe::table_number& number = table.numbers[column];
  out.open('{').member("name", number.name).member("metric", number.metric);
  out.member("kind", observe::name_of(number.kind)).member("unit", observe::name_of(number.unit));
  out.member("help", number.help);
  if (const distribution* const spread = bounds_of(table, column)) {
    out.key("bounds").open('[');
    for (const double bound : spread->bounds) out.value(bound);
    out.close(']');
  }
  out.close('}');
}

void write_exemplar(json_text& out, const observe::exemplar& example) {
  out.open('{').member("bucket", example.bucket).member("value", example.value);
  out.key("trace_id").hex(example.trace_id).key("span_id").hex(example.span_id);
  out.member("unix_ms", example.unix_ns / 1'000'000).close('}');
}

void write_value(json_text& out, const distribution& spread) {
  out.open('{').member("sum", spread.sum).key("counts").open('[');
  for (const std::uint64_t count : spread.counts) out.value(count);
  out.close(']');
  if (!spread.exemplars.empty()) {
    out.key("exemplars").open('[');
    for (const observe::exemplar& example : spread.exemplars) write_exemplar(out, example);
    out.close(']');
  }
  out.close('}');
}
void write_value(json_text& out, auto number) { out.value(number); }

void write_row(json_text& out, const observe::table_row& row) {
  out.open('{').key("labels").open('[');
  for (const std::string& label : row.labels) out.value(label);
  out.close(']').key("values").open('[');
  for (const observe::number_value& value : row.values)
    std::visit([&](const auto& number) { write_value(out, number); }, value);
  out.close(']').close('}');
}

}  // namespace

void write_members(json_text& out, const observe::number_group& group, const void* values) {
  for (const observe::number& described : group.numbers()) {
    out.key(described.member);
    const observe::number_value value = described.read(values);
    if (const auto* const spread = std::get_if<distribution>(&value)) {
      out.open('{').member("sum", spread->sum).member("count", spread->count());
      out.member("p50", spread->quantile(0.5)).member("p99", spread->quantile(0.99)).close('}');
    } else {
      std::visit([&](const auto& number) { write_value(out, number); }, value);
    }
  }
}

void write_tables(json_text& out, const observe::number_tables& all) {
  out.open('[');
  for (const observe::number_rows& table : all.all()) {
    out.open('{').member("prefix", table.prefix).key("labels").open('[');
    for (const std::string& label : table.labels) out.value(label);
    out.close(']').key("numbers").open('[');
    for (std::size_t i = 0; i < table.numbers.size(); ++i) write_number(out, table, i);
    out.close(']').key("rows").open('[');
    for (const observe::table_row& row : table.rows) write_row(out, row);
    out.close(']').close('}');
  }
  out.close(']');
}

}  // namespace troupe::observing
