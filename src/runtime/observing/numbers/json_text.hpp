// json_text: builds the text of one JSON value.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/json_string.hpp"

namespace troupe::observing {

// Keys and values in the order of the calls; open() and close() must match. In strings
// bytes that are not UTF-8 become U+FFFD.
class json_text {
 public:
  json_text& open(char bracket) {  // `{` or `[`, as a value
    separate();
    text_ += bracket;
    is_first_ = true;
    return *this;
  }
  json_text& close(char bracket) {
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  json_text& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    is_first_ = true;  // no comma in front of the value
    return *this;
  }
  json_text& value(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  json_text& value(const char* text) { return value(std::string_view(text)); }
  json_text& value(bool yes) {
    separate();
    text_ += yes ? "true" : "false";
    return *this;
  }
  template <std::integral Number>
  json_text& value(Number number) {
    separate();
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text_.append(digits.data(), end);
    return *this;
  }
  // The shortest text that reads back as the same number; null for an infinity, and what is none.
  json_text& value(double number) {
    if (!std::isfinite(number)) return null();
    separate();
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text_.append(digits.data(), end);
    return *this;
  }
  json_text& null() {
    separate();
    text_ += "null";
    return *this;
  }
  template <class Value>
  json_text& member(std::string_view name, Value&& content) {
    return key(name).value(std::forward<Value>(content));
  }
  std::string take() && { return std::move(text_); }

 private:
  void separate() {
    if (!is_first_) text_ += ',';
    is_first_ = false;
  }
  void quote(std::string_view text) { base::add_json_string(text_, text); }

  std::string text_;
  bool is_first_ = true;
};

}  // namespace troupe::observing
