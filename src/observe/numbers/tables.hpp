// tables: all numbers of a process at one moment.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/numbers/number.hpp"

namespace troupe::observe {

// A column of a table.
struct table_number {
  std::string name;    // as a member of the summary
  std::string metric;  // for Prometheus
  number_kind kind = number_kind::counter;
  number_unit unit = number_unit::one;
  std::string help;
};

struct table_row {
  std::vector<std::string> labels;  // their values, in the table's order
  std::vector<number_value> values;
};

struct number_rows {
  std::string prefix;
  std::vector<std::string> labels;  // their names
  std::vector<table_number> numbers;
  std::vector<table_row> rows;
};

// Takes the numbers of things, one row for each.
class row_sink {
 public:
  virtual ~row_sink() = default;
  // `labels` are the values of the group's labels.
  virtual void take(const number_group& group, std::vector<std::string> labels,
                    const void* values) = 0;

  template <class Values>
  void add(const number_table<Values>& table, std::vector<std::string> labels,
           const Values& values) {
    take(table, std::move(labels), &values);
  }
};

class number_tables final : public row_sink {
 public:
  // A table without rows, unless there is one already.
  number_rows& table(const number_group& group);
  void take(const number_group& group, std::vector<std::string> labels,
            const void* values) override;
  void add_table(number_rows table) { all_.push_back(std::move(table)); }
  const std::vector<number_rows>& all() const noexcept { return all_; }

 private:
  std::vector<number_rows> all_;
  std::map<const number_group*, std::size_t> places_;
};

}  // namespace troupe::observe
