// history: the numbers of a program in the last hour, for sparklines and for looks back.
//
// A look adds all numbers of a moment. Of each number that was not always 0, a series keeps a value
// for each of the last 300 looks, and one for each ten looks of the last 3,600. A counter is kept
// as a rate, a gauge as a value, and a histogram as two series: the rate of new values, and the
// 99 % bound of the values since the last look. Ten rates become their mean, and ten other values
// their maximum, which is at least 0.
//
// Limits: 2,000 series of 2.6 KiB each; further ones are counted as left out. A series that was 0
// for an hour makes room.
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/numbers/tables.hpp"

namespace troupe::observe {

// The values of one series, by the number of the look.
class series {
 public:
  static constexpr std::size_t fine_steps = 300, coarse_steps = 360, looks_in_ten = 10;

  explicit series(bool is_rate) noexcept : is_rate_(is_rate) {}
  // Looks that are left out had the value 0. `look` never falls.
  void set(std::uint64_t look, float value) noexcept;
  // The look may be one of the newest `fine_steps`, and the ten one of the newest `coarse_steps`.
  float at(std::uint64_t look) const noexcept;
  float at_ten(std::uint64_t ten) const noexcept;
  bool was_zero_since(std::uint64_t look) const noexcept { return last_used_ < look; }

 private:
  void finish_ten(std::uint64_t next) noexcept;

  const bool is_rate_;
  std::uint64_t look_ = 0, last_used_ = 0;
  float ten_ = 0;  // of the looks so far of the ten that look_ is in
  std::array<float, fine_steps> fine_{};
  std::array<float, coarse_steps> coarse_{};
};

class history {
 public:
  static constexpr std::size_t series_max = 2'000;

  // The first look at a table only sets the start values of its counters and histograms, since the
  // process may be older. A row that appears later began at 0.
  // A label named `runtime` is left out: a history belongs to one runtime. Throws std::bad_alloc,
  // and is then as if some of the numbers had not been there.
  void add(const number_tables& now, std::int64_t now_ns);
  // Numbers without room, at the last look.
  std::size_t left_out() const noexcept { return left_out_; }

  // The looks that a window has, the newest one last: in tens if it reaches back behind the
  // newest 300.
  struct window {
    bool is_of_tens = false;
    std::uint64_t first = 0;
    std::vector<std::int64_t> times_ns{};  // of the looks, or of the last looks of the tens
  };
  // At most `count` looks up to that time, or as many tens as these are.
  window find(std::int64_t end_ns, std::size_t count) const;

  struct row_labels {
    std::string_view prefix;
    std::span<const std::string> label_names, labels;
  };
  // look(row_labels, name of the number, values of the window), for each series that is not all 0
  // there. The series of a row come together, and the rows of a table.
  template <class Look>
  void for_each(const window& within, std::string_view prefix, Look look) const {
    std::vector<float> values(within.times_ns.size());
    for (const auto& [table, entry] : tables_) {
      if (!prefix.empty() && table.prefix != prefix) continue;
      for (const auto& [labels, known] : entry.rows) {
        for (const auto& [number, kept] : known.numbers) {
          const row_labels where{table.prefix, table.labels, labels};
          if (fill(values, kept.values.get(), within)) look(where, number, values);
          if (fill(values, kept.p99.get(), within)) look(where, number + "_p99", values);
        }
      }
    }
  }

 private:
  struct known_number {
    double last = 0;                      // of a counter
    std::vector<std::uint64_t> counts{};  // of a histogram
    std::unique_ptr<series> values{}, p99{};
  };
  struct known_row {
    std::uint64_t seen = 0;  // the last look that had it
    std::map<std::string, known_number, std::less<>> numbers{};
  };
  // Several tables may have the same prefix; tables with the same name are kept together.
  struct table_name {
    std::string prefix;
    std::vector<std::string> labels;
    auto operator<=>(const table_name&) const = default;
  };
  struct known_table {
    std::uint64_t first = 0;  // the look that had it first
    std::map<std::vector<std::string>, known_row> rows{};
  };

  // `seconds`: since the look before; 0 for the first look at the table.
  void add_table(const number_rows& table, double seconds);
  void add_number(known_number& kept, const table_number& number, const number_value& value,
                  double seconds);
  void add_histogram(known_number& kept, const distribution& value, double seconds);
  void set(std::unique_ptr<series>& kept, bool is_rate, double value);
  void forget_old();
  static bool fill(std::vector<float>& values, const series* from, const window& within) noexcept;

  std::map<table_name, known_table> tables_;
  std::uint64_t look_ = series::looks_in_ten - 1;  // the first one begins a ten
  std::int64_t last_ns_ = 0;
  std::size_t series_ = 0, left_out_ = 0;
  std::array<std::int64_t, series::fine_steps> times_{};
  std::array<std::int64_t, series::coarse_steps> ten_times_{};
};

}  // namespace troupe::observe
