// enums: the names of the enumerators of an enumeration, without a line in it.
//
// The enumeration is scoped (enum class) or has a fixed underlying type. Its enumerators from 0 to
// 127 have names; of two with the same value the first one has (enumerators.hpp finds others).
// Thread: any. Cost: none for constants of the compilation; a look-up by name compares with each
// name.
//
// Example:
//     enum class Colour { red, green };
//     int main() {
//       std::cout << troupe::reflect::name_of(Colour::green) << '\n';  // green
//       const auto red = troupe::reflect::enumerator<Colour>("red");
//       std::cout << (red == Colour::red) << '\n';  // 1
//     }
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe::reflect {

namespace parts {

// No value may be outside of the underlying type, which may be bool.
template <class T>
inline constexpr std::size_t values_of =
    std::is_same_v<std::underlying_type_t<T>, bool> ? std::size_t{2} : std::size_t{128};

// Compilers write "[with auto Value = ...::Colour::red]", or "...(...::Colour)7]" for a value
// without a name.
template <auto Value>
consteval std::string_view enumerator_at() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("Value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  if (text.find(')') != std::string_view::npos && text.starts_with('(')) return {};
  const std::size_t colon = text.rfind(':');
  const std::string_view name = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const char first = name.empty() ? '0' : name.front();
  return (first >= '0' && first <= '9') || first == '(' || first == '-' ? std::string_view() : name;
}

template <class T, std::size_t... I>
consteval auto enumerators_of(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{enumerator_at<static_cast<T>(I)>()...};
}

}  // namespace parts

// Whether the functions here read it.
template <class T>
concept enumeration = std::is_enum_v<T> && requires {
  T{0};
};

// The names of the values from 0 to 127, in their order; "" for a value without a name.
template <enumeration T>
inline constexpr auto enumerator_names =
    parts::enumerators_of<T>(std::make_index_sequence<parts::values_of<T>>());

// "" for a value without a name. Lifetime: as the program.
template <enumeration T>
constexpr std::string_view name_of(T value) noexcept {
  // a negative number becomes a large one
  const auto number = static_cast<std::size_t>(static_cast<std::underlying_type_t<T>>(value));
  return number < parts::values_of<T> ? enumerator_names<T>[number] : std::string_view();
}

// The enumerator with that name; nothing if there is none.
template <enumeration T>
constexpr std::optional<T> enumerator(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < parts::values_of<T>; ++i) {
    if (enumerator_names<T>[i] == name) return static_cast<T>(i);
  }
  return std::nullopt;
}

}  // namespace troupe::reflect
