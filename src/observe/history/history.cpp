#include "observe/history/history.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace troupe::observe {
namespace {

constexpr std::string_view hidden_label = "runtime";

constexpr std::uint64_t ten_of(std::uint64_t look) noexcept { return look / series::looks_in_ten; }

double as_double(const number_value& value) {
  return std::visit(
      []<class Value>(const Value& held) {
        if constexpr (std::is_same_v<Value, distribution>)
          return 0.0;
        else
          return static_cast<double>(held);
      },
      value);
}

bool is_zero(const number_value& value) {
  const auto* const spread = std::get_if<distribution>(&value);
  return spread != nullptr ? spread->count() == 0 : as_double(value) == 0;
}

}  // namespace

// ---- series ----

void series::set(std::uint64_t look, float value) noexcept {
  if (value != 0) last_used_ = look;
  const std::uint64_t skipped = std::min<std::uint64_t>(look - look_, fine_steps);
  for (std::uint64_t i = 1; i < skipped; ++i) fine_[(look - i) % fine_steps] = 0;
  finish_ten(ten_of(look));
  look_ = look;
  fine_[look % fine_steps] = value;
  ten_ = is_rate_ ? ten_ + value / static_cast<float>(looks_in_ten) : std::max(ten_, value);
}

void series::finish_ten(std::uint64_t next) noexcept {
  const std::uint64_t now = ten_of(look_);
  if (next == now) return;
  const std::uint64_t skipped = std::min<std::uint64_t>(next - now, coarse_steps);
  for (std::uint64_t i = 1; i < skipped; ++i) coarse_[(next - i) % coarse_steps] = 0;
  const float ten = std::exchange(ten_, 0.0f);
  if (next - now < coarse_steps) coarse_[now % coarse_steps] = ten;
}

float series::at(std::uint64_t look) const noexcept {
  return look > look_ ? 0 : fine_[look % fine_steps];
}

float series::at_ten(std::uint64_t ten) const noexcept {
  const std::uint64_t now = ten_of(look_);
  if (ten >= now) return ten == now ? ten_ : 0;
  return coarse_[ten % coarse_steps];
}

// ---- history ----

void history::add(const number_tables& now, std::int64_t now_ns) {
  constexpr double ns_per_s = 1e9, seconds_min = 1e-3;
  const double seconds = std::max(static_cast<double>(now_ns - last_ns_) / ns_per_s, seconds_min);
  last_ns_ = now_ns;
  ++look_;
  times_[look_ % series::fine_steps] = now_ns;
  ten_times_[ten_of(look_) % series::coarse_steps] = now_ns;
  left_out_ = 0;
  for (const number_rows& table : now.all()) add_table(table, seconds);
  constexpr std::uint64_t forgets_each = 60;
  if (look_ % forgets_each == 0) forget_old();
}

// Most numbers of a program are always 0: nothing is kept of these.
void history::add_table(const number_rows& table, double seconds) {
  const auto hidden = std::ranges::find(table.labels, hidden_label) - table.labels.begin();
  const auto shown = [hidden](std::vector<std::string> labels) {
    if (hidden < std::ssize(labels)) labels.erase(labels.begin() + hidden);
    return labels;
  };
  known_table& entry = tables_[{table.prefix, shown(table.labels)}];
  if (entry.first == 0) entry.first = look_;
  if (entry.first == look_) seconds = 0;
  for (const table_row& row : table.rows) {
    std::vector<std::string> labels = shown(row.labels);
    auto kept = entry.rows.find(labels);
    if (kept == entry.rows.end()) {
      if (std::ranges::all_of(row.values, is_zero)) continue;
      kept = entry.rows.try_emplace(std::move(labels)).first;
    }
    kept->second.seen = look_;
    auto& numbers = kept->second.numbers;
    for (std::size_t i = 0; i < table.numbers.size(); ++i) {
      const std::string& name = table.numbers[i].name;
      auto number = numbers.find(name);
      if (number == numbers.end() && is_zero(row.values[i])) continue;
      if (number == numbers.end()) number = numbers.try_emplace(name).first;
      add_number(number->second, table.numbers[i], row.values[i], seconds);
    }
  }
}

void history::add_number(known_number& kept, const table_number& number, const number_value& value,
                         double seconds) {
  if (const auto* const spread = std::get_if<distribution>(&value))
    return add_histogram(kept, *spread, seconds);
  const double now = as_double(value);
  if (number.kind == number_kind::gauge) return set(kept.values, false, now);
  // A counter of a thing that ended and came back begins at 0.
  const double more = std::max(now - std::exchange(kept.last, now), 0.0);
  if (seconds != 0) set(kept.values, true, more / seconds);
}

void history::add_histogram(known_number& kept, const distribution& value, double seconds) {
  distribution more = value;
  for (std::size_t i = 0; i < std::min(more.counts.size(), kept.counts.size()); ++i)
    more.counts[i] -= std::min(more.counts[i], kept.counts[i]);
  kept.counts = value.counts;
  if (seconds == 0) return;
  constexpr double p99 = 0.99;
  set(kept.values, true, static_cast<double>(more.count()) / seconds);
  set(kept.p99, false, more.quantile(p99));
}

void history::set(std::unique_ptr<series>& kept, bool is_rate, double value) {
  if (kept == nullptr) {
    if (value == 0) return;
    if (series_ == series_max) {
      ++left_out_;
      return;
    }
    kept = std::make_unique<series>(is_rate);
    ++series_;
  }
  kept->set(look_, static_cast<float>(value));
}

void history::forget_old() {
  constexpr std::uint64_t hour = series::coarse_steps * series::looks_in_ten;
  if (look_ <= hour) return;
  const std::uint64_t oldest = look_ - hour;
  const auto drop = [this, oldest](std::unique_ptr<series>& unused) {
    if (unused == nullptr || !unused->was_zero_since(oldest)) return;
    unused = nullptr;
    --series_;
  };
  for (auto& [table, entry] : tables_) {
    for (auto& [labels, kept] : entry.rows) {
      for (auto& [name, number] : kept.numbers) {
        drop(number.values);
        drop(number.p99);
      }
    }
    std::erase_if(entry.rows, [oldest](const auto& row) { return row.second.seen < oldest; });
  }
}

history::window history::find(std::int64_t end_ns, std::size_t count) const {
  const auto collect = [end_ns](auto& times, std::uint64_t begin, std::uint64_t end,
                                std::size_t most) {
    window found;
    begin = std::max(begin, end - std::min<std::uint64_t>(end, times.size()));
    while (end > begin && times[(end - 1) % times.size()] > end_ns) --end;
    found.first = std::max(begin, end - std::min<std::uint64_t>(end, most));
    for (std::uint64_t i = found.first; i < end; ++i)
      found.times_ns.push_back(times[i % times.size()]);
    return found;
  };
  constexpr std::uint64_t first = series::looks_in_ten;
  window fine = collect(times_, first, look_ + 1, count);
  const bool has_all = look_ < first + series::fine_steps;
  if (fine.times_ns.size() == count || has_all) return fine;
  const std::size_t tens = (count + series::looks_in_ten - 1) / series::looks_in_ten;
  // The last ten is not over yet, unless its tenth look was the last look.
  window coarse = collect(ten_times_, ten_of(first), ten_of(look_ + 1), tens);
  coarse.is_of_tens = true;
  return coarse.times_ns.empty() ? fine : coarse;
}

bool history::fill(std::vector<float>& values, const series* from, const window& within) noexcept {
  if (from == nullptr) return false;
  bool has_one = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = within.is_of_tens ? from->at_ten(within.first + i) : from->at(within.first + i);
    has_one |= values[i] != 0;
  }
  return has_one;
}

}  // namespace troupe::observe
