// value_text: typed values from the texts of a request: parameters, cookies, fields of forms.
#pragma once

#include "troupe/base/language.hpp"

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::http {

// Appends the decoded text to `to`: "a%20b" becomes "a b". Returns false if the text is malformed,
// or if it decodes to a zero byte.
bool decode_percent(std::string_view text, std::string& to, bool plus_is_space = false);

// A type to which a text of a request can be converted: a number, a bool ("true", "false", "1",
// "0"), or a type that is made from a std::string_view.
template <class T>
concept text_value = std::same_as<T, bool> ||
                     ((std::integral<T> || std::floating_point<T>)&&requires(const char* text,
                                                                             T& to) {
                       std::from_chars(text, text, to);
                     }) ||
                     (!std::integral<T> && !std::floating_point<T> &&
                      std::default_initializable<T> && std::movable<T> &&
                      std::constructible_from<T, std::string_view>);

namespace values {

// Returns false if the text does not fit the type. Numbers have neither a sign '+' nor spaces.
template <text_value T>
bool from_text(std::string_view text, T& to) {
  if constexpr (std::is_same_v<T, bool>) {
    to = text == "true" || text == "1";
    return to || text == "false" || text == "0";
  } else if constexpr (std::integral<T> || std::floating_point<T>) {
    const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), to);
    return bad == std::errc{} && rest == text.data() + text.size();
  } else {
    to = T(text);
    return true;
  }
}

// The required form of a text, for the error: "a whole number from 0 to 255"; "" for a type that is
// made from a text.
template <class T>
std::string wanted() {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::integral<T> && sizeof(T) < 8) {
    return "a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  } else if constexpr (std::integral<T>) {
    return "a whole number";
  } else {
    return std::floating_point<T> ? "a number" : "";
  }
}

// Where a value comes from, for errors.
struct origin {
  std::string_view kind;  // "query parameter"
  std::string_view name;
};

// Throw status_error 400: "query parameter 'page': a whole number is needed", "… is missing", "… is
// not encoded correctly".
[[noreturn]] void fail_unfit(const origin& source, const std::string& wanted);
[[noreturn]] void fail_missing(const origin& source);
[[noreturn]] void fail_malformed(const origin& source);

// Takes pairs off "a=1&b=2", up to the next one with the name of `source`, whose decoded value it
// puts into `value`. Returns false at the end.
bool next_pair(std::string_view& left, const origin& source, std::string& value);

template <class T>
struct kind_of {
  static constexpr bool is_optional = false, is_list = false;
  using value_type = T;
};
template <class T>
struct kind_of<std::optional<T>> {
  static constexpr bool is_optional = true, is_list = false;
  using value_type = T;
};
template <class T>
struct kind_of<std::vector<T>> {
  static constexpr bool is_optional = false, is_list = true;
  using value_type = T;
};

template <class T>
T converted(std::string_view text, const origin& source) {
  T value{};
  bool fits = false;
  try {
    fits = from_text(text, value);
  } catch (const std::invalid_argument&) {  // a type that checks the text in its constructor
  } catch (const std::out_of_range&) {
  }
  if (!fits) fail_unfit(source, wanted<T>());
  return value;
}

// The typed values with one name. `next(text)` puts the next value, decoded, into a std::string and
// returns false when there is none.
template <class T, class Next>
T typed(const origin& source, Next&& next) {
  using shape = kind_of<T>;
  static_assert(
      text_value<typename shape::value_type>,
      "troupe: a value of a request is a number, a bool, a std::string, a type that is made from a "
      "std::string_view, or a std::optional or a std::vector of one of these");
  static_assert(!std::is_same_v<typename shape::value_type, std::string_view> &&
                    !std::is_same_v<typename shape::value_type, const char*>,
                "troupe: this value is decoded into a string of its own, which a view would "
                "outlive: ask for a std::string");
  std::string text;
  if constexpr (shape::is_list) {
    T all;
    while (next(text)) all.push_back(converted<typename shape::value_type>(text, source));
    return all;
  } else {
    if (!next(text)) {
      if constexpr (shape::is_optional) {
        return std::nullopt;
      } else {
        fail_missing(source);
      }
    }
    return converted<typename shape::value_type>(text, source);
  }
}

}  // namespace values

}  // namespace troupe::http
