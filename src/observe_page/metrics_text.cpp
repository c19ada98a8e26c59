#include "observe_page/metrics_text.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/http/values/accept.hpp"
#include "troupe/json/read.hpp"

namespace troupe::observe_page {
namespace {

// The answer, as far as it is needed here. A number that is infinite or NaN is null.
struct exemplar {
  std::size_t bucket;
  std::optional<double> value;
  std::string trace_id, span_id;
  std::int64_t unix_ms;
};
struct distribution {
  std::optional<double> sum;
  std::vector<double> counts;
  std::optional<std::vector<exemplar>> exemplars;
};
using number_value = std::optional<std::variant<bool, double, distribution>>;
struct table_row {
  std::vector<std::string> labels;
  std::vector<number_value> values;
};
struct table_number {
  std::string metric, kind, help;
  std::optional<std::vector<double>> bounds;
};
struct number_table {
  std::vector<std::string> labels;
  std::vector<table_number> numbers;
  std::vector<table_row> rows;
};
struct all_numbers {
  std::vector<number_table> tables;
};

// The shortest text that reads back as the same number.
std::string text_of(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}
std::string text_of(const std::optional<double>& value) { return value ? text_of(*value) : "NaN"; }
// In help texts quotation marks stay as they are.
std::string escaped(const std::string& value, bool in_quotes) {
  std::string text;
  for (const char one : value) {
    if (one == '\\' || (one == '"' && in_quotes)) text += '\\';
    if (one == '\n') {
      text += "\\n";
    } else {
      text += one;
    }
  }
  return text;
}

// `a="b",c="d"`.
std::string labels_of(const std::vector<std::string>& names,
                      const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!text.empty()) text += ',';
    text += names[i] + "=\"" + escaped(values.at(i), true) + "\"";
  }
  return text;
}

// Writes the numbers of a program, one table after the other.
class metrics_writer {
 public:
  explicit metrics_writer(metrics_format format) noexcept
      : is_open_(format == metrics_format::open_metrics) {}

  // Call it for each number before the first add_number().
  void add_name(const table_number& number) { names_.insert(number.metric); }

  // Throws std::out_of_range for a row that lacks a label or a value.
  void add_number(const number_table& table, std::size_t column) {
    const table_number& number = table.numbers[column];
    const std::string help = escaped(number.help, is_open_);
    text_ += is_open_ && number.kind == "counter" ? counter_head(number.metric, help)
                                                  : head(number.metric, number.kind, help);
    for (const table_row& row : table.rows) {
      const std::string labels = labels_of(table.labels, row.labels);
      const number_value& value = row.values.at(column);
      if (!value) {
        add_sample(number.metric, labels, "NaN");
      } else if (const auto* const spread = std::get_if<distribution>(&*value)) {
        add_histogram(number, labels, *spread);
      } else if (const bool* const truth = std::get_if<bool>(&*value)) {
        add_sample(number.metric, labels, *truth ? "1" : "0");
      } else {
        add_sample(number.metric, labels, text_of(std::get<double>(*value)));
      }
    }
  }
  std::string end() && {
    if (is_open_) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  static std::string head(const std::string& family, const std::string& kind,
                          const std::string& help) {
    return "# HELP " + family + " " + help + "\n# TYPE " + family + " " + kind + "\n";
  }
  // The samples of a counter end in "_total", and in OpenMetrics its family does not. If another
  // metric has the family's name, the counter is one of unknown type, whose samples may have any.
  std::string counter_head(const std::string& name, const std::string& help) const {
    constexpr std::string_view total = "_total";
    if (!name.ends_with(total)) return head(name, "unknown", help);
    const std::string family = name.substr(0, name.size() - total.size());
    if (names_.contains(family)) return head(name, "unknown", help);
    return head(family, "counter", help);
  }
  void add_sample(const std::string& name, const std::string& labels, const std::string& value,
                  const std::string& exemplar = {}) {
    text_ += name;
    if (!labels.empty()) text_ += "{" + labels + "}";
    text_ += " " + value + exemplar + "\n";
  }

  // Prometheus adds up: each bucket has the values of those before it.
  void add_histogram(const table_number& number, const std::string& labels,
                     const distribution& spread) {
    const std::string& name = number.metric;
    const std::vector<double> bounds = number.bounds.value_or(std::vector<double>());
    const std::string before = labels.empty() ? labels : labels + ",";
    double so_far = 0;
    for (std::size_t i = 0; i < spread.counts.size(); ++i) {
      so_far += spread.counts[i];
      const std::string bound = i < bounds.size() ? bound_of(bounds[i]) : "+Inf";
      add_sample(name + "_bucket", before + "le=\"" + bound + "\"", text_of(so_far),
                 exemplar_of(spread, i));
    }
    add_sample(name + "_sum", labels, text_of(spread.sum));
    add_sample(name + "_count", labels, text_of(so_far));
  }
  // OpenMetrics has floating-point numbers here, so that a bound has one text in all programs.
  std::string bound_of(double bound) const {
    std::string text = text_of(bound);
    if (is_open_ && text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  // ` # {trace_id="1f",span_id="2a"} 0.5 1700000000.123`, or nothing.
  std::string exemplar_of(const distribution& spread, std::size_t bucket) const {
    if (!is_open_ || !spread.exemplars) return {};
    for (const exemplar& seen : *spread.exemplars) {
      if (seen.bucket != bucket) continue;
      return " # {trace_id=\"" + escaped(seen.trace_id, true) + "\",span_id=\"" +
             escaped(seen.span_id, true) + "\"} " + text_of(seen.value) + " " +
             seconds_of(seen.unix_ms);
    }
    return {};
  }
  static std::string seconds_of(std::int64_t unix_ms) {
    std::string text = std::to_string(1000 + unix_ms % 1000);
    text.front() = '.';
    return std::to_string(unix_ms / 1000) + text;
  }

  const bool is_open_;
  std::set<std::string> names_;  // of all metrics
  std::string text_;
};

}  // namespace

const char* type_of(metrics_format format) noexcept {
  return format == metrics_format::open_metrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

metrics_format preferred_format(std::string_view accept) noexcept {
  return http::quality_of_type(accept, "application/openmetrics-text") >
                 http::quality_of_type(accept, "text/plain")
             ? metrics_format::open_metrics
             : metrics_format::prometheus;
}

std::string as_metrics(std::string_view numbers, metrics_format format) {
  metrics_writer writer(format);
  try {
    const auto all = json::read<all_numbers>(numbers, {.bytes = numbers.size()});
    for (const number_table& table : all.tables) {
      for (const table_number& number : table.numbers) writer.add_name(number);
    }
    for (const number_table& table : all.tables) {
      for (std::size_t i = 0; i < table.numbers.size(); ++i) writer.add_number(table, i);
    }
  } catch (const json::json_error& failed) {
    throw std::runtime_error(std::string("troupe: the program did not answer with its numbers: ") +
                             failed.what());
  } catch (const std::out_of_range&) {
    throw std::runtime_error("troupe: the program's numbers are malformed");
  }
  return std::move(writer).end();
}

}  // namespace troupe::observe_page
