#include "observe/numbers/tables.hpp"

namespace troupe::observe {

number_rows& number_tables::table(const number_group& of) {
  const auto [place, is_new] = places_.try_emplace(&of, all_.size());
  if (!is_new) return all_[place->second];
  number_rows& made = all_.emplace_back();
  made.prefix = of.prefix();
  made.labels.assign(of.labels().begin(), of.labels().end());
  for (const number& one : of.numbers())
    made.numbers.push_back(
        {std::string(one.member), of.metric(one), one.kind, one.unit, std::string(one.help)});
  return made;
}

void number_tables::take(const number_group& of, std::vector<std::string> labels,
                         const void* values) {
  number_rows& rows = table(of);
  table_row& row = rows.rows.emplace_back();
  row.labels = std::move(labels);
  row.values.reserve(of.numbers().size());
  for (const number& one : of.numbers()) row.values.push_back(one.read(values));
}

}  // namespace troupe::observe
