#include "troupe/observe/numbers/instruments.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "observe/numbers/registry.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/base/error.hpp"

namespace troupe {
namespace observe {

class counter_series : public sharded_counter {};
class histogram_series : public sharded_histogram {
 public:
  using sharded_histogram::sharded_histogram;
};
class gauge_series {
 public:
  // order: relaxed (all)  a statistic; publishes nothing
  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(double more) noexcept { value_.fetch_add(more, std::memory_order_relaxed); }
  double get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// One number of the program, with all its series.
class instrument {
 public:
  struct declaration {
    std::string metric, help;
    number_kind kind = number_kind::counter;
    std::vector<std::string> labels;
    std::vector<double> bounds;
    std::size_t series_max = 0;
    bool operator==(const declaration&) const = default;
  };

  explicit instrument(declaration declared) : is_(std::move(declared)) {}
  const declaration& is() const noexcept { return is_; }

  template <class Series>
  Series& series_of(std::vector<std::string> values) {
    std::lock_guard held(mutex_);
    auto found = series_.find(values);
    // Besides the series of calls without labels, which each instrument has.
    if (found == series_.end() && series_.size() > is_.series_max) {
      overflowed_.add(1);
      values.assign(is_.labels.size(), "(others)");
      found = series_.find(values);
    }
    if (found == series_.end())
      found = series_.try_emplace(std::move(values), make<Series>()).first;
    return *std::get<std::unique_ptr<Series>>(found->second);
  }

  std::uint64_t overflowed() const noexcept { return overflowed_.get(); }
  number_rows rows() const {
    number_rows rows;
    rows.prefix = is_.metric;
    rows.labels = is_.labels;
    rows.numbers.push_back({is_.metric, is_.metric, is_.kind, unit(), is_.help});
    std::lock_guard held(mutex_);
    for (const auto& [values, series] : series_) {
      table_row row{
          values,
          {std::visit([](const auto& counted) { return value_of_series(*counted); }, series)}};
      // Calls without labels are those with empty ones; they are shown if there were any.
      if (values.size() != is_.labels.size()) {
        if (is_zero(row.values.front())) continue;
        row.labels.resize(is_.labels.size());
      }
      rows.rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  using any_series = std::variant<std::unique_ptr<counter_series>, std::unique_ptr<gauge_series>,
                                  std::unique_ptr<histogram_series>>;

  template <class Series>
  std::unique_ptr<Series> make() const {
    if constexpr (std::is_same_v<Series, histogram_series>) {
      return std::make_unique<Series>(is_.bounds);
    } else {
      return std::make_unique<Series>();
    }
  }
  static number_value value_of_series(const auto& series) { return series.get(); }
  static bool is_zero(const number_value& value) {
    if (const auto* const spread = std::get_if<distribution>(&value)) return spread->count() == 0;
    const auto* const real = std::get_if<double>(&value);
    return real != nullptr ? *real == 0 : std::get<std::uint64_t>(value) == 0;
  }
  number_unit unit() const noexcept {
    if (is_.metric.ends_with("_seconds")) return number_unit::seconds;
    return is_.metric.ends_with("_bytes") ? number_unit::bytes : number_unit::one;
  }

  const declaration is_;
  mutable std::mutex mutex_;
  std::map<std::vector<std::string>, any_series> series_;
  sharded_counter overflowed_;
};

namespace {

constexpr std::size_t labels_max = 8;
constexpr std::array default_bounds{5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2,
                                    0.1,  0.25, 0.5,    1.0,  2.5,  5.0,    10.0};

// The registry of the process. Never destroyed: static instruments end after it otherwise.
struct registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<instrument>, std::less<>> all;

  static registry& get() {
    static registry& instance = *new registry;
    return instance;
  }
};

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw usage_error("troupe: the number \"" + std::string(name.substr(0, 200)) +
                    "\": " + std::string(why));
}

bool is_name(std::string_view text) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check(std::string_view name, const instrument::declaration& declared) {
  if (!is_name(name))
    refuse(name, "a name has small letters, digits and '_', and no digit in front");
  for (const std::string_view taken : {"troupe_", "process_"}) {
    if (name.starts_with(taken)) refuse(name, "names of the library begin so: choose another one");
  }
  for (const std::string_view end : {"_total", "_count", "_sum", "_bucket"}) {
    if (name.ends_with(end)) refuse(name, "leave the end out: the form of the metric adds it");
  }
  if (declared.help.empty()) refuse(name, "it has no help text");
  if (declared.labels.size() > labels_max) refuse(name, "it has more than 8 labels");
  for (const std::string& label : declared.labels) {
    if (!is_name(label) || label.starts_with("__") || label == "le")
      refuse(name, "\"" + label + "\" is not a valid label name");
    if (std::ranges::count(declared.labels, label) > 1) refuse(name, "a label is named twice");
  }
  if (declared.series_max == 0) refuse(name, "series_max is 0");
  if (declared.bounds.size() > sharded_histogram::bounds_max)
    refuse(name, "it has more than 31 bounds");
  if (!std::ranges::is_sorted(declared.bounds, std::ranges::less_equal{}) ||
      !std::ranges::all_of(declared.bounds, [](double bound) { return std::isfinite(bound); }))
    refuse(name, "the bounds do not rise");
}

std::shared_ptr<instrument> make(std::string name, std::string help, number_kind kind,
                                 instrument_options chosen) {
  instrument::declaration declared{name,
                                   std::move(help),
                                   kind,
                                   std::move(chosen.labels),
                                   std::move(chosen.bounds),
                                   chosen.series_max};
  if (kind == number_kind::histogram && declared.bounds.empty())
    declared.bounds.assign(default_bounds.begin(), default_bounds.end());
  check(name, declared);
  if (kind == number_kind::counter) declared.metric += "_total";
  registry& known = registry::get();
  std::lock_guard held(known.mutex);
  std::weak_ptr<instrument>& place = known.all[declared.metric];
  if (std::shared_ptr<instrument> there = place.lock()) {
    if (there->is() != declared) refuse(name, "it was declared before, in another way");
    return there;
  }
  const auto added = std::make_shared<instrument>(std::move(declared));
  place = added;
  return added;
}

std::vector<std::string> values_of(const instrument& counted,
                                   std::initializer_list<std::string_view> values) {
  if (values.size() != counted.is().labels.size())
    refuse(counted.is().metric, "it has " + std::to_string(counted.is().labels.size()) +
                                    " labels, but " + std::to_string(values.size()) +
                                    " values were given");
  return {values.begin(), values.end()};
}

struct overflow {
  std::uint64_t times = 0;
};
const number_table<overflow> overflow_numbers{
    "troupe",
    {"metric"},
    {counter_of<&overflow::times>(
        "overflowing_series", "How often a number had more values of its labels than its limit.")}};

}  // namespace

void collect_instruments(number_tables& tables) {
  std::vector<std::shared_ptr<instrument>> all;
  {
    registry& known = registry::get();
    std::lock_guard held(known.mutex);
    std::erase_if(known.all, [](const auto& entry) { return entry.second.expired(); });
    for (const auto& [name, entry] : known.all) {
      if (std::shared_ptr<instrument> there = entry.lock()) all.push_back(std::move(there));
    }
  }
  collect_sources(tables);
  for (const std::shared_ptr<instrument>& counted : all) {
    tables.add_table(counted->rows());
    if (!counted->is().labels.empty())
      tables.add(overflow_numbers, {counted->is().metric}, {counted->overflowed()});
  }
}

}  // namespace observe

using observe::number_kind;

counter::counter(std::string name, std::string help, instrument_options chosen)
    : instrument_(
          observe::make(std::move(name), std::move(help), number_kind::counter, std::move(chosen))),
      own_(&instrument_->series_of<observe::counter_series>({})) {}
counter::series counter::with(std::initializer_list<std::string_view> values) {
  return series(
      &instrument_->series_of<observe::counter_series>(observe::values_of(*instrument_, values)));
}
void counter::series::add(std::uint64_t n) noexcept { values_->add(n); }
std::uint64_t counter::series::value() const noexcept { return values_->get(); }

gauge::gauge(std::string name, std::string help, instrument_options chosen)
    : instrument_(
          observe::make(std::move(name), std::move(help), number_kind::gauge, std::move(chosen))),
      own_(&instrument_->series_of<observe::gauge_series>({})) {}
gauge::series gauge::with(std::initializer_list<std::string_view> values) {
  return series(
      &instrument_->series_of<observe::gauge_series>(observe::values_of(*instrument_, values)));
}
void gauge::series::set(double value) noexcept { values_->set(value); }
void gauge::series::add(double more) noexcept { values_->add(more); }
double gauge::series::value() const noexcept { return values_->get(); }

histogram::histogram(std::string name, std::string help, instrument_options chosen)
    : instrument_(observe::make(std::move(name), std::move(help), number_kind::histogram,
                                std::move(chosen))),
      own_(&instrument_->series_of<observe::histogram_series>({})) {}
histogram::series histogram::with(std::initializer_list<std::string_view> values) {
  return series(
      &instrument_->series_of<observe::histogram_series>(observe::values_of(*instrument_, values)));
}
void histogram::series::record(double value) noexcept { values_->add(value); }
std::uint64_t histogram::series::count() const { return values_->get().count(); }

}  // namespace troupe
