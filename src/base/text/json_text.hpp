// json_text: builds the text of JSON values. All JSON that the library writes comes from it, except
// for a program's own types (json::write) and the frame of a trace (observe/chrome.cpp).
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/hex.hpp"
#include "base/text/json_string.hpp"

namespace troupe::base {

// Keys and values in the order of the calls; open() and close() must match. In strings
// bytes that are not UTF-8 become U+FFFD. A sink takes pieces of the text by append(). The writer
// owns it, or refers to it (`json_writer<std::string&>`). It allocates nothing itself, and throws
// nothing that the sink does not throw.
template <class Sink>
class json_writer {
 public:
  json_writer() = default;
  explicit json_writer(Sink out) noexcept : out_(std::forward<Sink>(out)) {}

  json_writer& open(char bracket) {  // `{` or `[`, as a value
    separate();
    put(bracket);
    is_first_ = true;
    return *this;
  }
  json_writer& close(char bracket) {
    put(bracket);
    is_first_ = false;
    return *this;
  }
  json_writer& key(std::string_view name) {
    value(name);
    put(':');
    is_first_ = true;  // no comma in front of the value
    return *this;
  }
  json_writer& value(std::string_view text) {
    return value_by([text](auto& out) { add_json_string(out, text); });
  }
  json_writer& value(const char* text) { return value(std::string_view(text)); }
  json_writer& value(bool yes) { return raw(yes ? "true" : "false"); }
  template <std::integral Number>
  json_writer& value(Number number) {
    return add_number(number, "");
  }
  // The shortest text that reads back as the same number; null for an infinity, and for NaN.
  json_writer& value(double number) {
    return std::isfinite(number) ? add_number(number, "") : null();
  }
  // A whole number as a string: readers in JavaScript have no integers of 64 bits.
  template <std::integral Number>
  json_writer& quoted(Number number) {
    return add_number(number, "\"");
  }
  json_writer& null() { return raw("null"); }
  // A value that is JSON already.
  json_writer& raw(std::string_view json) {
    separate();
    out_.append(json);
    return *this;
  }
  // A value that the function writes to the sink.
  template <class Function>
  json_writer& value_by(const Function& write) {
    separate();
    write(out_);
    return *this;
  }
  // Bytes as a string of two digits each.
  template <class Bytes>
  json_writer& hex(const Bytes& bytes) {
    separate();
    put('"');
    for (const std::uint8_t byte : bytes) {
      const auto digits = hex_of(byte);
      put(digits[0]);
      put(digits[1]);
    }
    put('"');
    return *this;
  }
  template <class Value>
  json_writer& member(std::string_view name, Value&& content) {
    return key(name).value(std::forward<Value>(content));
  }
  // Call it after the sink has lost all that was written behind some whole value.
  void resume_after_value() noexcept { is_first_ = false; }
  std::string take() && requires std::same_as<Sink, std::string> { return std::move(out_); }

 private:
  void separate() {
    if (!is_first_) put(',');
    is_first_ = false;
  }
  void put(char character) {
    if constexpr (requires { out_.push_back(character); }) {
      out_.push_back(character);
    } else {
      out_.append(std::string_view(&character, 1));
    }
  }
  template <class Number>
  json_writer& add_number(Number number, std::string_view quote) {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    separate();
    out_.append(quote);
    out_.append(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
    out_.append(quote);
    return *this;
  }

  Sink out_;
  bool is_first_ = true;
};

using json_text = json_writer<std::string>;

}  // namespace troupe::base
