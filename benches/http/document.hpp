// document: the answer to /json, written into whatever memory the containers use.
#pragma once

#include <charconv>
#include <string_view>
#include <utility>

namespace load {

inline constexpr std::pair<std::string_view, std::string_view> document_fields[] = {
    {"message", "Hello, World! This is more than a string holds itself."},
    {"name", "a name that is longer than sixteen bytes"},
    {"street", "17, Street of the Many Allocations"},
    {"city", "a city with a name of some length"},
    {"description of him", "one of those who ask again and again"},
    {"last request of his", "GET /json HTTP/1.1, pipelined"},
    {"user agent", "a load generator of one core"},
    {"accept", "application/json;q=0.9, text/plain"},
};
inline constexpr int document_numbers = 16;

// `fields` is a map of strings, `numbers` a vector, `to` a string; all are empty.
template <class Table, class Numbers, class Text>
void write_document(Table& fields, Numbers& numbers, Text& to) {
  for (const auto& [name, value] : document_fields) fields.emplace(name, value);
  for (int i = 0; i < document_numbers; ++i) numbers.push_back(i * 1009);
  to += '{';
  for (const auto& [name, value] : fields) {
    to += '"';
    to += name;
    to += "\":\"";
    to += value;
    to += "\",";
  }
  to += "\"numbers\":[";
  for (const int number : numbers) {
    char digits[16];
    if (to.back() != '[') to += ',';
    to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  to += "]}";
}

}  // namespace load
