// write: a value of a type of your own as a text in JSON, without a line for its members.
#pragma once

#include "troupe/base/language.hpp"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "troupe/json/mapping.hpp"

namespace troupe::json {

namespace parts {

void write_string(std::string& out, std::string_view text);
void write_number(std::string& out, double number);
void write_number(std::string& out, float number);
// The last `digits` digits are the fraction of a second.
void write_instant(std::string& out, std::chrono::sys_seconds second, std::chrono::nanoseconds rest,
                   int digits);
void write_date(std::string& out, const std::chrono::year_month_day& day);
[[noreturn]] void fail_nameless(long long value);

template <class T>
void write_value(std::string& out, const T& from);

template <class T>
void write_whole(std::string& out, T from) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, from).ptr);
}

template <class T>
void write_time(std::string& out, const T& from) {
  using period = typename T::period;
  const auto second = std::chrono::floor<std::chrono::seconds>(from);
  constexpr int digits = std::ratio_greater_equal_v<period, std::ratio<1>> ? 0
                         : std::ratio_greater_equal_v<period, std::milli>  ? 3
                         : std::ratio_greater_equal_v<period, std::micro>  ? 6
                                                                           : 9;
  write_instant(out, second, from - second, digits);
}

template <class T>
std::string_view name_for(T from) {
  const std::string_view name = reflect::name_of(from);
  if (name.empty()) fail_nameless(static_cast<long long>(from));
  return name;
}

template <class T>
bool is_absent(const T& value) noexcept {
  if constexpr (optional_like<T>) {
    return !value;
  } else {
    static_cast<void>(value);
    return false;
  }
}

// `begun`: a member was written before.
template <class T>
void write_members(std::string& out, const T& from, bool begun) {
  reflect::for_each_member(from, [&](std::string_view name, const auto& value) {
    if (is_absent(value)) return;
    out += begun ? ",\"" : "\"";
    out += member_name(name);
    out += "\":";
    begun = true;
    write_value(out, value);
  });
}

template <class T>
void write_map(std::string& out, const T& from) {
  bool begun = false;
  out += '{';
  for (const auto& [key, value] : from) {
    if (std::exchange(begun, true)) out += ',';
    if constexpr (std::same_as<typename T::key_type, std::string>) {
      write_string(out, key);
    } else {
      write_string(out, name_for(key));
    }
    out += ':';
    write_value(out, value);
  }
  out += '}';
}

template <class T>
void write_list(std::string& out, const T& from) {
  bool begun = false;
  out += '[';
  for (const auto& element : from) {
    if (std::exchange(begun, true)) out += ',';
    write_value(out, static_cast<const std::remove_cvref_t<decltype(element)>&>(element));
  }
  out += ']';
}

template <class... Each>
void write_variant(std::string& out, const std::variant<Each...>& from) {
  using all = alternatives<Each...>;
  static_assert(all::differ,
                "troupe: of a std::variant in JSON each kind (null, bool, number, string, array, "
                "object) belongs to one alternative; only several structs may be in it, which the "
                "member \"type\" tells apart");
  std::visit(
      [&]<class One>(const One& alternative) {
        if constexpr (all::are_tagged && reflect::aggregate<One>) {
          out += "{\"type\":\"";
          out += tag_of<One>();
          out += '"';
          write_members(out, alternative, true);
          out += '}';
        } else {
          write_value(out, alternative);
        }
      },
      from);
}

template <class T>
void write_value(std::string& out, const T& from) {
  static_assert(sizeof(no_mapping_of<T>) != 0);
  if constexpr (custom<T>) {
    write_value(out, as<T>::to(from));
  } else if constexpr (std::same_as<T, std::monostate>) {
    out += "null";
  } else if constexpr (std::same_as<T, bool>) {
    out += from ? "true" : "false";
  } else if constexpr (whole_number<T>) {
    write_whole(out, from);
  } else if constexpr (std::same_as<T, float>) {
    write_number(out, from);
  } else if constexpr (std::floating_point<T>) {
    write_number(out, static_cast<double>(from));
  } else if constexpr (text<T>) {
    write_string(out, from);
  } else if constexpr (reflect::enumeration<T>) {
    write_string(out, name_for(from));
  } else if constexpr (traits<T>::is_duration) {
    write_value(out, from.count());
  } else if constexpr (traits<T>::is_time) {
    write_time(out, from);
  } else if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    write_date(out, from);
  } else if constexpr (optional_like<T>) {
    if (!from) {
      out += "null";
    } else {
      write_value(out, *from);
    }
  } else if constexpr (traits<T>::is_variant) {
    write_variant(out, from);
  } else if constexpr (map<T>) {
    write_map(out, from);
  } else if constexpr (list<T> || fixed_size<T>::is) {
    write_list(out, from);
  } else if constexpr (reflect::aggregate<T>) {
    out += '{';
    write_members(out, from, false);
    out += '}';
  }
}

}  // namespace parts

// Writes a value as read() reads it (read.hpp has the table): without spaces, members in their
// order, without the members that are empty optionals. A number is written with as few digits as
// give the same number again; bytes of a string that are not UTF-8 become U+FFFD. Errors:
// usage_error for a number that is infinite or no number, for a date or time outside of the years 0
// to 9999, and for an enumerator without a name. Thread: any.
//
// Example:
//     enum class State { open, sent };
//     struct Order {
//       int id;
//       State state;
//       std::vector<std::string> items;
//     };
//     int main() {
//       std::cout << troupe::json::write(Order{7, State::sent, {"tea"}}) << '\n';
//       // {"id":7,"state":"sent","items":["tea"]}
//     }
template <class T>
std::string write(const T& from) {
  std::string result;
  parts::write_value(result, from);
  return result;
}
// The same, at the end of a text.
template <class T>
void write(std::string& out, const T& from) {
  parts::write_value(out, from);
}

}  // namespace troupe::json
