// read: a value of a type of your own from a text in JSON, without a line for its members.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/json/error.hpp"
#include "troupe/json/mapping.hpp"
#include "troupe/json/value.hpp"

namespace troupe::json {

namespace parts {

// Seconds and nanoseconds since 1970 of "2026-11-25T21:23:43.5Z" or "…+01:00"; nothing if the text
// is no time of RFC 3339 in the years 0 to 9999.
struct instant {
  std::chrono::sys_seconds second;
  std::chrono::nanoseconds rest;
};
std::optional<instant> read_instant(std::string_view text) noexcept;
std::optional<std::chrono::year_month_day> read_date(std::string_view text) noexcept;
[[noreturn]] void fail_range(const place& at, std::int64_t least, std::uint64_t most);
[[noreturn]] void fail_name(const place& at, const std::string_view* names, std::size_t count);
// The names of the members that a struct does not have. An object in which a name occurs twice is
// refused, in unknown members as well, and wherever the names are in the text.
class unknown_members {
 public:
  // Throws json_error when an object in the value has a name twice.
  void add(std::string_view name, const value& is, const place& within);
  void check(const place& within);

 private:
  std::vector<std::string_view> names_;
};
std::size_t reserved(std::size_t elements, std::size_t bytes_each) noexcept;

template <class T>
void read_value(const value& from, T& target, const place& at, const read_options& how);

inline void expect(const value& from, kind wanted, const place& at, std::string_view expected) {
  if (from.kind() != wanted) fail(at, expected);
}

template <class T>
void read_whole(const value& from, T& target, const place& at) {
  if constexpr (std::is_signed_v<T>) {
    const auto number = from.kind() == kind::number ? from.integer() : std::nullopt;
    if (!number || !std::in_range<T>(*number))
      fail_range(at, std::numeric_limits<T>::min(),
                 static_cast<std::uint64_t>(std::numeric_limits<T>::max()));
    target = static_cast<T>(*number);
  } else {
    const auto number = from.kind() == kind::number ? from.natural() : std::nullopt;
    if (!number || !std::in_range<T>(*number)) fail_range(at, 0, std::numeric_limits<T>::max());
    target = static_cast<T>(*number);
  }
}

template <class T>
void read_time(const value& from, T& target, const place& at) {
  constexpr std::string_view wanted = "a time such as \"2026-11-25T21:23:43Z\" is needed";
  expect(from, kind::string, at, wanted);
  const auto found = read_instant(from.text());
  if (!found) fail(at, wanted);
  using duration = typename T::duration;
  using std::chrono::floor;
  // The range of 64 bits of nanoseconds ends in the years 1677 and 2262.
  if constexpr (std::ratio_less_v<typename duration::period, std::milli>) {
    const auto most = std::chrono::floor<std::chrono::seconds>(duration::max());
    if (found->second.time_since_epoch() >= most || found->second.time_since_epoch() <= -most)
      fail(at, "this time is too far away");
  }
  target = T(floor<duration>(found->second.time_since_epoch())) +
           floor<duration>(found->second - floor<duration>(found->second) + found->rest);
}

template <class T>
void read_enumerator(std::string_view name, T& target, const place& at) {
  const auto found = reflect::enumerator<T>(name);
  if (!found)
    fail_name(at, reflect::enumerator_names<T>.data(), reflect::enumerator_names<T>.size());
  target = *found;
}

template <class T>
void read_map(const value& from, T& target, const place& at, const read_options& how) {
  expect(from, kind::object, at, "an object is needed");
  members all(from);
  target.clear();
  while (const auto entry = all.next()) {
    const place inner{&at, entry->name};
    typename T::key_type key{};
    if constexpr (std::same_as<typename T::key_type, std::string>) {
      key = entry->name;
    } else {
      read_enumerator(entry->name, key, inner);
    }
    typename T::mapped_type result{};
    read_value(entry->is, result, inner, how);
    if (!target.emplace(std::move(key), std::move(result)).second) fail(inner, "it is there twice");
  }
}

template <class T>
void read_list(const value& from, T& target, const place& at, const read_options& how) {
  expect(from, kind::array, at, "an array is needed");
  target.clear();
  if constexpr (requires { target.reserve(std::size_t{}); })
    target.reserve(reserved(from.size(), sizeof(typename T::value_type)));
  elements all(from);
  for (std::size_t i = 0;; ++i) {
    const auto element = all.next();
    if (!element) break;
    typename T::value_type result{};
    read_value(*element, result, {&at, {}, i}, how);
    target.insert(target.end(), std::move(result));
  }
}

template <class T>
void read_fixed(const value& from, T& target, const place& at, const read_options& how) {
  constexpr std::size_t size = fixed_size<T>::size;
  if (from.kind() != kind::array || from.size() != size)
    fail(at, "an array of " + std::to_string(size) + " is needed");
  elements all(from);
  for (std::size_t i = 0; i < size; ++i) read_value(*all.next(), target[i], {&at, {}, i}, how);
}

// Members mostly come in the order of the struct, so that the search begins at the expected one.
template <class T>
std::size_t find_member(std::string_view name, std::size_t expected) noexcept {
  constexpr auto& names = reflect::member_names<T>;
  std::size_t at = expected;
  for (std::size_t i = 0; i < names.size(); ++i, ++at) {
    if (at >= names.size()) at = 0;
    if (member_name(names[at]) == name) return at;
  }
  return names.size();
}

template <class T>
void read_struct(const value& from, T& target, const place& at, const read_options& how,
                 bool is_tagged = false) {
  expect(from, kind::object, at, "an object is needed");
  constexpr std::size_t count = reflect::member_count<T>;
  constexpr auto& names = reflect::member_names<T>;
  const auto tied = reflect::tie_members(target);
  std::array<bool, count + 1> seen{};
  unknown_members unknown;
  members all(from);
  std::size_t expected = 0;
  while (const auto entry = all.next()) {
    const std::size_t found = find_member<T>(entry->name, expected);
    const place inner{&at, entry->name};
    if (found == count) {
      if (how.refuse_unknown && !(is_tagged && entry->name == "type"))
        fail(inner, "there is no such member");
      unknown.add(entry->name, entry->is, at);
      continue;
    }
    if (std::exchange(seen[found], true)) fail(inner, "it is there twice");
    expected = found + 1;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      static_cast<void>(
          ((I == found && (read_value(entry->is, std::get<I>(tied), inner, how), true)) || ...));
    }
    (std::make_index_sequence<count>());
  }
  unknown.check(at);
  if (how.keep_missing) return;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto check = [&]<std::size_t At>() {
      using member = std::remove_cvref_t<decltype(std::get<At>(tied))>;
      if (seen[At]) return;
      if constexpr (optional_like<member>) {
        std::get<At>(tied) = member();
      } else {
        fail({&at, member_name(names[At])}, "it is missing");
      }
    };
    static_cast<void>(check);
    (check.template operator()<I>(), ...);
  }
  (std::make_index_sequence<count>());
}

std::string_view tag_in(const value& from, const place& at);

template <class... Each>
void read_variant(const value& from, std::variant<Each...>& target, const place& at,
                  const read_options& how) {
  using all = alternatives<Each...>;
  static_assert(all::differ,
                "troupe: of a std::variant in JSON each kind (null, bool, number, string, array, "
                "object) belongs to one alternative; only several structs may be in it, which the "
                "member \"type\" tells apart");
  const unsigned kind = 1u << static_cast<unsigned>(from.kind());
  std::string_view tag;
  if constexpr (all::are_tagged) {
    if (kind == object) tag = tag_in(from, at);
  }
  const auto take = [&]<class One>(std::type_identity<One>) {
    if ((kinds_of<One>() & kind) == 0) return false;
    if constexpr (all::are_tagged && reflect::aggregate<One>) {
      if (tag != tag_of<One>()) return false;
      One result{};
      read_struct(from, result, at, how, true);
      target = std::move(result);
    } else {
      One result{};
      read_value(from, result, at, how);
      target = std::move(result);
    }
    return true;
  };
  if ((take(std::type_identity<Each>()) || ...)) return;
  if (tag.data() != nullptr) fail({&at, "type"}, "there is no such type");
  fail(at, "a value of another kind is needed");
}

template <class T>
void read_custom(const value& from, T& target, const place& at, const read_options& how) {
  typename as<T>::type result{};
  read_value(from, result, at, how);
  try {
    target = as<T>::from(std::move(result));
  } catch (const std::invalid_argument& e) {
    fail(at, e.what());
  }
}

template <class T>
void read_value(const value& from, T& target, const place& at, const read_options& how) {
  static_assert(sizeof(no_mapping_of<T>) != 0);
  static_assert(!std::is_same_v<T, std::string_view>,
                "troupe: a std::string_view would outlive the text that it is read from: use a "
                "std::string");
  if constexpr (custom<T>) {
    read_custom(from, target, at, how);
  } else if constexpr (std::same_as<T, std::monostate>) {
    expect(from, kind::null, at, "null is needed");
  } else if constexpr (std::same_as<T, bool>) {
    expect(from, kind::boolean, at, "true or false is needed");
    target = from.boolean();
  } else if constexpr (whole_number<T>) {
    read_whole(from, target, at);
  } else if constexpr (std::floating_point<T>) {
    expect(from, kind::number, at, "a number is needed");
    target = static_cast<T>(from.number());
    if (target > std::numeric_limits<T>::max() || target < std::numeric_limits<T>::lowest())
      fail(at, "this number is too large");
  } else if constexpr (std::same_as<T, std::string>) {
    expect(from, kind::string, at, "a string is needed");
    target = from.text();
  } else if constexpr (reflect::enumeration<T>) {
    read_enumerator(from.kind() == kind::string ? from.text() : std::string_view(), target, at);
  } else if constexpr (traits<T>::is_duration) {
    typename T::rep count{};
    read_value(from, count, at, how);
    target = T(count);
  } else if constexpr (traits<T>::is_time) {
    read_time(from, target, at);
  } else if constexpr (std::same_as<T, std::chrono::year_month_day>) {
    const auto found = from.kind() == kind::string ? read_date(from.text()) : std::nullopt;
    if (!found) fail(at, "a date such as \"2026-11-25\" is needed");
    target = *found;
  } else if constexpr (optional_like<T>) {
    if (from.kind() == kind::null) {
      target = T();
      return;
    }
    typename traits<T>::inner result{};
    read_value(from, result, at, how);
    if constexpr (traits<T>::is_pointer) {
      target = std::make_unique<typename traits<T>::inner>(std::move(result));
    } else {
      target = std::move(result);
    }
  } else if constexpr (traits<T>::is_variant) {
    read_variant(from, target, at, how);
  } else if constexpr (map<T>) {
    read_map(from, target, at, how);
  } else if constexpr (list<T>) {
    read_list(from, target, at, how);
  } else if constexpr (fixed_size<T>::is) {
    read_fixed(from, target, at, how);
  } else if constexpr (reflect::aggregate<T>) {
    read_struct(from, target, at, how);
  }
}

}  // namespace parts

// Reads a value of type T. All of the text must be JSON, in UTF-8; members may come in any order.
//
// | T | JSON |
// |---|---|
// | bool | true, false |
// | numbers | a number within the range of T; for a whole number a whole one: 1, 1.0, 1e2 |
// | std::string | a string |
// | enum class | the enumerator's name, as a string |
// | std::chrono duration | its count |
// | time of std::chrono::system_clock, year_month_day | "2026-11-25T21:23:43Z", "2026-11-25" |
// | a struct without constructors, of at most 64 members | an object; "class_" is "class" |
// | vector, list, deque, set | an array |
// | std::array, an array of C | an array of that size |
// | map, unordered_map, by strings or an enum class | an object |
// | std::optional, std::unique_ptr | as the value, or null; as a member it may be missing |
// | std::variant | the alternative of that kind; of several structs the member "type" names one |
// | a type with a specialisation of json::as | as the specialisation says |
//
// Another type is refused by the compiler. T is default-constructed, then assigned to. Errors:
// json_error names the member: of a member that is missing (unless `how` keeps it), of two with the
// same name in one object, even of members that T does not have, of a value that does not fit, and
// beyond the limits of `how`. Thread: any. Cost: about 6 ns for each number
// or short string; a thread keeps 1 MiB for the next text at most.
//
// Example:
//     struct Item {
//       std::string name;
//       double price;
//     };
//     struct Order {
//       int id;
//       std::vector<Item> items;
//       std::optional<std::string> note;
//     };
//     int main() {
//       const auto order = troupe::json::read<Order>(
//           R"({"id": 7, "items": [{"name": "tea", "price": 3.5}]})");
//       std::cout << order.items[0].name << '\n';
//     }
template <class T>
T read(std::string_view text, const read_options& how = {}) {
  static_assert(sizeof(parts::no_mapping_of<T>) != 0);
  const parts::document all(text, how);
  T result{};
  parts::read_value(all.root(), result, {}, how);
  return result;
}

}  // namespace troupe::json
