#include "observe_page/metrics.hpp"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

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

void add_sample(std::string& to, const std::string& name, const std::string& labels,
                const std::string& value) {
  to += name;
  if (!labels.empty()) to += "{" + labels + "}";
  to += " " + value + "\n";
}

// Prometheus adds up: each bucket has the values of those before it.
void add_histogram(std::string& to, const std::string& name, const std::string& labels,
                   const json& bounds, const json& value) {
  const std::string before = labels.empty() ? labels : labels + ",";
  double so_far = 0;
  for (std::size_t i = 0; i < value.at("counts").size(); ++i) {
    so_far += value.at("counts").at(i).get<double>();
    const std::string bound = i < bounds.size() ? text_of(bounds.at(i)) : "+Inf";
    add_sample(to, name + "_bucket", before + "le=\"" + bound + "\"", text_of(so_far));
  }
  add_sample(to, name + "_sum", labels, text_of(value.at("sum")));
  add_sample(to, name + "_count", labels, text_of(so_far));
}

void add_number(std::string& to, const json& table, std::size_t column) {
  const json& one = table.at("numbers").at(column);
  const auto name = one.at("metric").get<std::string>();
  to += "# HELP " + name + " " + escaped(one.at("help").get<std::string>(), false) + "\n# TYPE " +
        name + " " + one.at("kind").get<std::string>() + "\n";
  for (const json& row : table.at("rows")) {
    const std::string labels = labels_of(table.at("labels"), row.at("labels"));
    const json& value = row.at("values").at(column);
    if (value.is_object()) {
      add_histogram(to, name, labels, one.at("bounds"), value);
    } else {
      add_sample(to, name, labels, text_of(value));
    }
  }
}

}  // namespace

std::string as_metrics(std::string_view numbers) {
  const json read = json::parse(numbers, nullptr, false);
  if (!read.is_object() || !read.contains("tables"))
    throw std::runtime_error("troupe: the program did not answer with its numbers");
  std::string text;
  try {
    for (const json& table : read.at("tables")) {
      for (std::size_t i = 0; i < table.at("numbers").size(); ++i) add_number(text, table, i);
    }
  } catch (const json::exception&) {
    throw std::runtime_error("troupe: the program's numbers are malformed");
  }
  return text;
}

}  // namespace troupe::observe_page
