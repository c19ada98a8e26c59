#include "observe/numbers/tables.hpp"

namespace troupe::observe {

number_rows& number_tables::table(const number_group& group) {
  const auto [place, is_new] = places_.try_emplace(&group, all_.size());
  if (!is_new) return all_[place->second];
  number_rows& rows = all_.emplace_back();
  rows.prefix = group.prefix();
  rows.labels.assign(group.labels().begin(), group.labels().end());
  for (const number& column : group.numbers())
    rows.numbers.push_back({std::string(column.member), group.metric(column), column.kind,
                            column.unit, std::string(column.help)});
  return rows;
}

void number_tables::take(const number_group& group, std::vector<std::string> labels,
                         const void* values) {
  number_rows& rows = table(group);
  table_row& row = rows.rows.emplace_back();
  row.labels = std::move(labels);
  row.values.reserve(group.numbers().size());
  for (const number& column : group.numbers()) row.values.push_back(column.read(values));
}

}  // namespace troupe::observe
