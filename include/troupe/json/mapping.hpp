// mapping: the types that are mapped to JSON, and their forms there. read.hpp has the table.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "troupe/base/type_name.hpp"
#include "troupe/reflect/enums.hpp"
#include "troupe/reflect/members.hpp"

namespace troupe::json {

// Maps a type of your own by one that is mapped: specialise it with `type`, `from` and `to`. `from`
// throws std::invalid_argument for a value that does not fit, whose text is the error.
//
// Example (declarations):
//     #include <troupe/json/read.hpp>
//     class Money {
//      public:
//       explicit Money(long cents) : cents_(cents) {}
//       long cents() const { return cents_; }
//      private:
//       long cents_;
//     };
//     template <>
//     struct troupe::json::as<Money> {
//       using type = long;
//       static Money from(long cents) { return Money(cents); }
//       static long to(const Money& amount) { return amount.cents(); }
//     };
template <class T>
struct as;

namespace parts {

template <class T>
concept custom = requires {
  typename as<T>::type;
};

// Numbers; char and its kin are no numbers, nor are they text.
template <class T>
concept letter = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept whole_number = std::integral<T> && !std::same_as<T, bool> && !letter<T>;

template <class T>
struct traits {
  static constexpr bool is_optional = false, is_pointer = false, is_variant = false,
                        is_duration = false, is_time = false;
};
template <class T>
struct traits<std::optional<T>> : traits<void> {
  static constexpr bool is_optional = true;
  using inner = T;
};
template <class T>
struct traits<std::unique_ptr<T>> : traits<void> {
  static constexpr bool is_pointer = true;
  using inner = T;
};
template <class... Each>
struct traits<std::variant<Each...>> : traits<void> {
  static constexpr bool is_variant = true;
};
template <class Rep, class Period>
struct traits<std::chrono::duration<Rep, Period>> : traits<void> {
  static constexpr bool is_duration = true;
};
template <class Duration>
struct traits<std::chrono::time_point<std::chrono::system_clock, Duration>> : traits<void> {
  static constexpr bool is_time = true;
};

template <class T>
concept optional_like = traits<T>::is_optional || traits<T>::is_pointer;
template <class T>
concept text = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
template <class T>
concept map = requires(T& all) {
  typename T::key_type;
  typename T::mapped_type;
  all.begin()->second;
}
&&(std::same_as<typename T::key_type, std::string> || reflect::enumeration<typename T::key_type>);
// std::vector, list, deque, set, and others with the interface of one of them.
template <class T>
concept list = !text<T> && !map<T> && requires(T & all) {
  typename T::value_type;
  all.begin();
  all.end();
  all.insert(all.end(), std::declval<typename T::value_type>());
};
template <class T>
struct fixed_size {
  static constexpr bool is = false;
};
template <class T, std::size_t N>
struct fixed_size<std::array<T, N>> {
  static constexpr bool is = true;
  static constexpr std::size_t size = N;
};
template <class T, std::size_t N>
requires(!letter<T>) struct fixed_size<T[N]> {
  static constexpr bool is = true;
  static constexpr std::size_t size = N;
};

// The kinds of JSON that a type may be, as bits.
enum kinds : unsigned { null = 1, boolean = 2, number = 4, string = 8, array = 16, object = 32 };

template <class T>
consteval unsigned kinds_of();
template <class... Each>
consteval unsigned kinds_of_all(const std::variant<Each...>*) {
  return (kinds_of<Each>() | ... | 0u);
}
template <class T>
consteval unsigned kinds_of() {
  if constexpr (custom<T>) {
    return kinds_of<typename as<T>::type>();
  } else if constexpr (std::same_as<T, std::monostate>) {
    return null;
  } else if constexpr (std::same_as<T, bool>) {
    return boolean;
  } else if constexpr (whole_number<T> || std::floating_point<T> || traits<T>::is_duration) {
    return number;
  } else if constexpr (text<T> || reflect::enumeration<T> || traits<T>::is_time ||
                       std::same_as<T, std::chrono::year_month_day>) {
    return string;
  } else if constexpr (optional_like<T>) {
    return null | kinds_of<typename traits<T>::inner>();
  } else if constexpr (traits<T>::is_variant) {
    return kinds_of_all(static_cast<const T*>(nullptr));
  } else if constexpr (map<T>) {
    return object;
  } else if constexpr (list<T> || fixed_size<T>::is) {
    return array;
  } else if constexpr (reflect::aggregate<T>) {
    return object;
  } else {
    return 0;
  }
}

// The alternatives of a variant: each kind of JSON belongs to one of them, but several structs
// differ by the member "type".
template <class... Each>
struct alternatives {
  static constexpr std::size_t structs =
      ((reflect::aggregate<Each> && !fixed_size<Each>::is ? 1u : 0u) + ... + 0u);
  static constexpr bool are_tagged = structs > 1;
  static constexpr bool differ = [] {
    unsigned seen = 0;
    bool are_distinct = true;
    const auto add = [&](unsigned kinds, bool is_struct) {
      if (are_tagged && is_struct) kinds = 0;
      are_distinct = are_distinct && (seen & kinds) == 0;
      seen |= kinds;
    };
    (add(kinds_of<Each>(), reflect::aggregate<Each>), ...);
    return are_distinct && !(are_tagged && (seen & object) != 0);
  }();
};

// The name without its namespaces: "Circle".
template <class T>
constexpr std::string_view tag_of() noexcept {
  const std::string_view name = base::type_name<T>();
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// A trailing '_' is no part of a name, so that a member may be called class_.
constexpr std::string_view member_name(std::string_view name) noexcept {
  if (name.size() > 1 && name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// Instantiated for a type that is not mapped: the compiler names it.
template <class T>
struct no_mapping_of {
  static_assert(kinds_of<T>() != 0,
                "troupe: this type has no form in JSON: a bool, a number, a std::string, an enum "
                "class, a std::chrono duration, date or time of the system's clock, a struct "
                "without constructors, a container, std::optional, std::unique_ptr and "
                "std::variant have a form; for other types specialize troupe::json::as");
};

}  // namespace parts

}  // namespace troupe::json
