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
    if (const auto* const of = std::get_if<distribution>(&row.values[column])) return of;
  }
  return nullptr;
}

void write_number(json_text& to, const observe::number_rows& table, std::size_t column) {
  const observe::table_number& one = table.numbers[column];
  to.open('{').member("name", one.name).member("metric", one.metric);
  to.member("kind", observe::name_of(one.kind)).member("unit", observe::name_of(one.unit));
  to.member("help", one.help);
  if (const distribution* const of = bounds_of(table, column)) {
    to.key("bounds").open('[');
    for (const double bound : of->bounds) to.value(bound);
    to.close(']');
  }
  to.close('}');
}

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

void write_exemplar(json_text& to, const observe::exemplar& one) {
  to.open('{').member("bucket", one.bucket).member("value", one.value);
  to.member("trace_id", hex(one.trace_id)).member("span_id", hex(one.span_id));
  to.member("unix_ms", one.unix_ns / 1'000'000).close('}');
}

void write_value(json_text& to, const distribution& of) {
  to.open('{').member("sum", of.sum).key("counts").open('[');
  for (const std::uint64_t count : of.counts) to.value(count);
  to.close(']');
  if (!of.exemplars.empty()) {
    to.key("exemplars").open('[');
    for (const observe::exemplar& one : of.exemplars) write_exemplar(to, one);
    to.close(']');
  }
  to.close('}');
}
void write_value(json_text& to, auto number) { to.value(number); }

void write_row(json_text& to, const observe::table_row& row) {
  to.open('{').key("labels").open('[');
  for (const std::string& label : row.labels) to.value(label);
  to.close(']').key("values").open('[');
  for (const observe::number_value& value : row.values)
    std::visit([&](const auto& one) { write_value(to, one); }, value);
  to.close(']').close('}');
}

}  // namespace

void write_members(json_text& to, const observe::number_group& of, const void* values) {
  for (const observe::number& one : of.numbers()) {
    to.key(one.member);
    const observe::number_value value = one.read(values);
    if (const auto* const spread = std::get_if<distribution>(&value)) {
      to.open('{').member("sum", spread->sum).member("count", spread->count());
      to.member("p50", spread->quantile(0.5)).member("p99", spread->quantile(0.99)).close('}');
    } else {
      std::visit([&](const auto& number) { write_value(to, number); }, value);
    }
  }
}

void write_tables(json_text& to, const observe::number_tables& all) {
  to.open('[');
  for (const observe::number_rows& table : all.all()) {
    to.open('{').member("prefix", table.prefix).key("labels").open('[');
    for (const std::string& label : table.labels) to.value(label);
    to.close(']').key("numbers").open('[');
    for (std::size_t i = 0; i < table.numbers.size(); ++i) write_number(to, table, i);
    to.close(']').key("rows").open('[');
    for (const observe::table_row& row : table.rows) write_row(to, row);
    to.close(']').close('}');
  }
  to.close(']');
}

}  // namespace troupe::observing
