// rows: the conversion of an answer's rows into values of the program, and of values into
// parameters.
//
// A row is read into an aggregate, by the names of its members: each member needs a column of its
// name, in any order, and each column needs a member. A row can also be read into a std::tuple, by
// position, or into a single value if there is one column.
//
// Values: bool, integers, enumerations, floating-point numbers, std::string,
// std::vector<std::byte>, std::chrono times of the system's clock (where the database has no type
// for them, an integer: microseconds since 1970 UTC), and a std::optional of one of these, where
// NULL may be. A value that does not fit is an error that names the column or the parameter: a
// whole number that the type cannot hold exactly, a number beyond its range or so small that it
// would be 0, a time beyond its range or between two of its units. A fraction becomes the nearest
// number of the type. A parameter may also be a text of any type, std::nullopt or nullptr; and
// where the database has arrays (PostgreSQL), a std::vector of one of these types. A time of a
// finer unit than microseconds, which databases do not store, is cut to microseconds when it is a
// parameter.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ratio>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/reflect/members.hpp"

namespace troupe::database {

namespace parts {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class T>
inline constexpr bool is_time = false;
template <class D>
inline constexpr bool is_time<std::chrono::sys_time<D>> = true;
template <class T>
inline constexpr bool is_bytes = std::is_same_v<T, std::vector<std::byte>>;
template <class T>
inline constexpr bool is_array = false;
template <class T>
inline constexpr bool is_array<std::vector<T>> = !std::is_same_v<T, std::byte>;

// These throw error (failure::conversion).
[[noreturn]] void refuse_null(std::string_view column);
[[noreturn]] void refuse_range(std::string_view column, std::int64_t value);
[[noreturn]] void refuse_number(std::string_view column);
[[noreturn]] void refuse_time(std::string_view column);
[[noreturn]] void refuse_parameter(int number);
[[noreturn]] void refuse_number_parameter(int number);
[[noreturn]] void refuse_time_parameter(int number);
// These throw error (failure::statement).
[[noreturn]] void refuse_columns(int has, std::size_t needs);
[[noreturn]] void refuse_member(std::string_view name);
[[noreturn]] void refuse_column(std::string_view name);

using micro_time = std::chrono::sys_time<std::chrono::microseconds>;

// The number as a floating-point one; nothing if it is a whole number that To cannot hold exactly,
// beyond its range, or so small that it would be 0.
template <std::floating_point To>
std::optional<To> as_real(std::int64_t value) noexcept {
  constexpr int bits = std::numeric_limits<To>::digits;
  const auto pattern = static_cast<std::uint64_t>(value);
  const std::uint64_t size = value < 0 ? 0 - pattern : pattern;
  if (size != 0 && static_cast<int>(std::bit_width(size)) - std::countr_zero(size) > bits)
    return std::nullopt;
  return static_cast<To>(value);
}
template <std::floating_point To, std::floating_point From>
std::optional<To> as_real(From value) noexcept {
  if constexpr (std::numeric_limits<To>::digits < std::numeric_limits<From>::digits) {
    constexpr From whole = From{1ull << std::min(63, std::numeric_limits<From>::digits)};
    const bool is_finite = value - value == 0;
    if (is_finite && std::abs(value) > From{std::numeric_limits<To>::max()}) return std::nullopt;
    const auto result = static_cast<To>(value);
    const bool is_exact = From{result} == value || !is_finite;
    if (!is_exact && (result == 0 || (std::abs(value) <= whole && std::trunc(value) == value)))
      return std::nullopt;
    return result;
  } else {
    return static_cast<To>(value);
  }
}

// The time in units of another kind; nothing if it lies between two of them, or beyond their range.
template <class Span>
std::optional<std::chrono::sys_time<Span>> as_time(micro_time at) noexcept {
  using count = typename Span::rep;
  using per = std::ratio_divide<std::micro, typename Span::period>;
  const std::int64_t us = at.time_since_epoch().count();
  if constexpr (std::is_floating_point_v<count>) {
    return std::chrono::sys_time<Span>(at.time_since_epoch());
  } else {
    std::int64_t parts = 0;
    if (__builtin_mul_overflow(us, std::int64_t{per::num}, &parts) || parts % per::den != 0 ||
        !std::in_range<count>(parts / per::den))
      return std::nullopt;
    return std::chrono::sys_time<Span>(Span(static_cast<count>(parts / per::den)));
  }
}
// In microseconds; nothing if it is beyond their range. The part of a microsecond is cut.
template <class Span>
std::optional<micro_time> as_micro_time(std::chrono::sys_time<Span> at) noexcept {
  using per = std::ratio_divide<typename Span::period, std::micro>;
  const auto given = at.time_since_epoch().count();
  if constexpr (std::is_floating_point_v<typename Span::rep>) {
    constexpr double most = 9.2e18;
    const double us = static_cast<double>(given) * per::num / per::den;
    if (!(std::abs(us) < most)) return std::nullopt;
    return micro_time(std::chrono::microseconds(static_cast<std::int64_t>(std::floor(us))));
  } else if constexpr (per::den == 1) {
    std::int64_t us = 0;
    if (__builtin_mul_overflow(given, std::int64_t{per::num}, &us)) return std::nullopt;
    return micro_time(std::chrono::microseconds(us));
  } else {
    return std::chrono::floor<std::chrono::microseconds>(at);
  }
}

// In the database's type for times, where the database has such a type.
template <class Row>
micro_time read_time(const Row& row, int column) {
  if constexpr (requires { row.time(column); }) {
    return row.time(column);
  } else {
    return micro_time(std::chrono::microseconds(row.integer(column)));
  }
}

}  // namespace parts

// The variable into which one column is read.
template <class T>
concept column_value =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    parts::is_bytes<T> || parts::is_time<T> || parts::is_optional<T>;

// Row: columns(), name(i), is_null(i), integer(i), real(i), text(i), bytes(i), and time(i) if it
// has it, which throw error for a value of another kind.
template <class T, class Row>
T read_value(const Row& row, int column) {
  static_assert(
      column_value<T>,
      "troupe: this type cannot be read from a column of a database; the kinds are listed "
      "in troupe/database/rows.hpp");
  if constexpr (parts::is_optional<T>) {
    if (row.is_null(column)) return std::nullopt;
    return read_value<typename T::value_type>(row, column);
  } else if constexpr (column_value<T>) {
    if (row.is_null(column)) parts::refuse_null(row.name(column));
    if constexpr (std::is_same_v<T, bool>) {
      const std::int64_t value = row.integer(column);
      if (value != 0 && value != 1) parts::refuse_range(row.name(column), value);
      return value == 1;
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<T>(read_value<std::underlying_type_t<T>>(row, column));
    } else if constexpr (std::is_integral_v<T>) {
      const std::int64_t value = row.integer(column);
      if (!std::in_range<T>(value)) parts::refuse_range(row.name(column), value);
      return static_cast<T>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      const std::optional<T> result = parts::as_real<T>(row.real(column));
      if (!result) parts::refuse_number(row.name(column));
      return *result;
    } else if constexpr (parts::is_time<T>) {
      const auto result = parts::as_time<typename T::duration>(parts::read_time(row, column));
      if (!result) parts::refuse_time(row.name(column));
      return *result;
    } else if constexpr (parts::is_bytes<T>) {
      const std::span<const std::byte> bytes = row.bytes(column);
      return T(bytes.begin(), bytes.end());
    } else {
      return T(row.text(column));
    }
  } else {
    __builtin_unreachable();  // std::unreachable needs C++23
  }
}

// Where the members of T lie in the columns of one answer. It is made once for all its rows.
template <class T>
class mapping {
 public:
  // Throws error if the columns do not fit T.
  template <class Row>
  explicit mapping(const Row& row) {
    if constexpr (parts::is_tuple<T>) {
      check_count(row.columns(), std::tuple_size_v<T>);
    } else if constexpr (reflect::aggregate<T>) {
      find_members(row);
    } else {
      check_count(row.columns(), 1);
    }
  }

  template <class Row>
  T read(const Row& row) const {
    if constexpr (parts::is_tuple<T>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return T{read_value<std::tuple_element_t<I, T>>(row, static_cast<int>(I))...};
      }
      (std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (reflect::aggregate<T>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return T{read_value<reflect::member_type<T, I>>(row, columns_[I])...};
      }
      (std::make_index_sequence<members>());
    } else {
      return read_value<T>(row, 0);
    }
  }

 private:
  static consteval std::size_t count_members() {
    if constexpr (reflect::aggregate<T>) {
      return reflect::member_count<T>;
    } else {
      return 0;
    }
  }
  static constexpr std::size_t members = count_members();

  static void check_count(int has, std::size_t needs) {
    if (std::cmp_not_equal(has, needs)) parts::refuse_columns(has, needs);
  }
  template <class Row>
  void find_members(const Row& row) {
    columns_.fill(-1);
    for (int i = 0; i < row.columns(); ++i) {
      const std::string_view name = row.name(i);
      std::size_t at = 0;
      while (at < members && reflect::member_names<T>[at] != name) ++at;
      if (at == members || columns_[at] >= 0) parts::refuse_column(name);
      columns_[at] = i;
    }
    for (std::size_t at = 0; at < members; ++at) {
      if (columns_[at] < 0) parts::refuse_member(reflect::member_names<T>[at]);
    }
  }

  std::array<int, members> columns_{};
};

// The type in which a parameter is sent to the database: texts and bytes are copied.
template <class T>
auto keep_parameter(T&& value) {
  using plain = std::decay_t<T>;
  if constexpr (std::is_convertible_v<plain, std::string_view> &&
                !std::is_same_v<plain, std::nullptr_t>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::is_convertible_v<plain, std::span<const std::byte>>) {
    const std::span<const std::byte> bytes = value;
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  } else if constexpr (parts::is_array<plain>) {
    using element = typename plain::value_type;
    using kept = decltype(keep_parameter(std::declval<const element&>()));
    if constexpr (std::is_same_v<kept, element>) {
      return plain(std::forward<T>(value));
    } else {
      std::vector<kept> all;
      for (const element& each : value) all.push_back(keep_parameter(each));
      return all;
    }
  } else {
    return plain(std::forward<T>(value));
  }
}

// A row of parameters: a std::tuple, std::pair or std::array, as a tuple that owns them.
template <class Row>
auto keep_row(Row&& row) {
  static_assert(
      requires { std::tuple_size<std::decay_t<Row>>::value; },
      "troupe: each row of parameters is a std::tuple, a std::pair or a std::array");
  const auto keep = [](auto&&... each) {
    return std::tuple<decltype(keep_parameter(std::forward<decltype(each)>(each)))...>(
        keep_parameter(std::forward<decltype(each)>(each))...);
  };
  return std::apply(keep, std::forward<Row>(row));
}
template <class Row>
auto keep_rows(std::vector<Row> rows) {
  std::vector<decltype(keep_row(std::move(rows.front())))> kept;
  kept.reserve(rows.size());
  for (Row& row : rows) kept.push_back(keep_row(std::move(row)));
  return kept;
}

// Statement: bind_null(i), bind_integer(i, n), bind_real(i, x), bind_text(i, text), bind_bytes(i,
// bytes), bind_time(i, time) if it has it, and for arrays begin_array(i), which gives another such
// object for the elements, and bind_array(i, elements); parameters are numbered from 1 on.
template <class Statement, class T>
void bind_value(Statement& statement, int number, const T& value) {
  if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, std::nullptr_t>) {
    statement.bind_null(number);
  } else if constexpr (parts::is_optional<T>) {
    value ? bind_value(statement, number, *value) : statement.bind_null(number);
  } else if constexpr (std::is_enum_v<T>) {
    bind_value(statement, number, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    if (!std::in_range<std::int64_t>(+value)) parts::refuse_parameter(number);
    statement.bind_integer(number, static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    const std::optional<double> result = parts::as_real<double>(value);
    if (!result) parts::refuse_number_parameter(number);
    statement.bind_real(number, *result);
  } else if constexpr (parts::is_time<T>) {
    const std::optional<parts::micro_time> at = parts::as_micro_time(value);
    if (!at) parts::refuse_time_parameter(number);
    if constexpr (requires { statement.bind_time(number, *at); }) {
      statement.bind_time(number, *at);
    } else {
      statement.bind_integer(number, at->time_since_epoch().count());
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    statement.bind_text(number, value);
  } else if constexpr (parts::is_bytes<T>) {
    statement.bind_bytes(number, value);
  } else if constexpr (parts::is_array<T>) {
    static_assert(
        requires { statement.begin_array(number); },
        "troupe: this database has no arrays; store the elements as rows");
    if constexpr (requires { statement.begin_array(number); }) {
      auto elements = statement.begin_array(number);
      for (const typename T::value_type& each : value) bind_value(elements, number, each);
      statement.bind_array(number, elements);
    }
  } else {
    static_assert(column_value<T>,
                  "troupe: this type cannot be a parameter of a statement; the kinds are listed in "
                  "troupe/database/rows.hpp");
  }
}

}  // namespace troupe::database
