#include "observe_page/metrics.hpp"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "troupe/http/values/accept.hpp"

namespace troupe::observe_page {
namespace {

using nlohmann::json;

// The shortest text that reads back as the same number.
std::string text_of(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}
std::string text_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_null() ? "NaN" : text_of(value.get<double>());
}

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
std::string labels_of(const json& names, const json& values) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!text.empty()) text += ',';
    text += names.at(i).get<std::string>() + "=\"" +
            escaped(values.at(i).get<std::string>(), true) + "\"";
  }
  return text;
}

// Writes the numbers of a program, one table after the other.
class metrics_writer {
 public:
  explicit metrics_writer(metrics_format format) noexcept
      : is_open_(format == metrics_format::open_metrics) {}

  // Call it for each number before the first add_number().
  void add_name(const json& number) { names_.insert(number.at("metric").get<std::string>()); }

  void add_number(const json& table, std::size_t column) {
    const json& one = table.at("numbers").at(column);
    const auto name = one.at("metric").get<std::string>();
    const auto kind = one.at("kind").get<std::string>();
    const std::string help = escaped(one.at("help").get<std::string>(), is_open_);
    text_ += is_open_ && kind == "counter" ? counter_head(name, help) : head(name, kind, help);
    for (const json& row : table.at("rows")) {
      const std::string labels = labels_of(table.at("labels"), row.at("labels"));
      const json& value = row.at("values").at(column);
      if (value.is_object()) {
        add_histogram(name, labels, one.at("bounds"), value);
      } else {
        add_sample(name, labels, text_of(value));
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
  void add_histogram(const std::string& name, const std::string& labels, const json& bounds,
                     const json& value) {
    const std::string before = labels.empty() ? labels : labels + ",";
    double so_far = 0;
    for (std::size_t i = 0; i < value.at("counts").size(); ++i) {
      so_far += value.at("counts").at(i).get<double>();
      const std::string bound = i < bounds.size() ? bound_of(bounds.at(i)) : "+Inf";
      add_sample(name + "_bucket", before + "le=\"" + bound + "\"", text_of(so_far),
                 exemplar_of(value, i));
    }
    add_sample(name + "_sum", labels, text_of(value.at("sum")));
    add_sample(name + "_count", labels, text_of(so_far));
  }
  // OpenMetrics has floating-point numbers here, so that a bound has one text in all programs.
  std::string bound_of(const json& bound) const {
    std::string text = text_of(bound);
    if (is_open_ && text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  // ` # {trace_id="1f",span_id="2a"} 0.5 1700000000.123`, or nothing.
  std::string exemplar_of(const json& value, std::size_t bucket) const {
    if (!is_open_ || !value.contains("exemplars")) return {};
    for (const json& one : value.at("exemplars")) {
      if (one.at("bucket").get<std::size_t>() != bucket) continue;
      return " # {trace_id=\"" + escaped(one.at("trace_id").get<std::string>(), true) +
             "\",span_id=\"" + escaped(one.at("span_id").get<std::string>(), true) + "\"} " +
             text_of(one.at("value")) + " " + seconds_of(one.at("unix_ms").get<std::int64_t>());
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
  const json read = json::parse(numbers, nullptr, false);
  if (!read.is_object() || !read.contains("tables"))
    throw std::runtime_error("troupe: the program did not answer with its numbers");
  metrics_writer writer(format);
  try {
    for (const json& table : read.at("tables")) {
      for (const json& number : table.at("numbers")) writer.add_name(number);
    }
    for (const json& table : read.at("tables")) {
      for (std::size_t i = 0; i < table.at("numbers").size(); ++i) writer.add_number(table, i);
    }
  } catch (const json::exception&) {
    throw std::runtime_error("troupe: the program's numbers are malformed");
  }
  return std::move(writer).end();
}

}  // namespace troupe::observe_page
