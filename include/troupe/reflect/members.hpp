// reflect: the names and the members of an aggregate, without a line in it: for code that maps
// structs to JSON, to rows of a database, or to stored bytes.
//
// An aggregate is a struct without constructors, base classes, private or virtual members. It has
// at most 64 members; none is a reference or a bit-field. Thread: any. Cost: none at run time; the
// results of these functions are constants of the compilation.
//
// Example:
//     struct Order {
//       int id;
//       std::string who;
//     };
//     int main() {
//       Order order{7, "Ada"};
//       troupe::reflect::for_each_member(order, [](std::string_view name, const auto& value) {
//         std::cout << name << '=' << value << ' ';  // id=7 who=Ada
//       });
//     }
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/reflect/bindings.hpp"

namespace troupe::reflect {

namespace parts {

// A type with a tuple's interface, as std::array, is read as a tuple.
template <class T>
concept like_a_tuple = requires {
  std::tuple_size<T>::value;
};

// Converts to the base classes of T alone.
template <class T>
struct any_base {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const noexcept;
};
template <class T>
concept has_base = requires {
  T{any_base<T>{}};
};

// An object that is only named: the address of a member of it names the member.
template <class T>
struct named {
  T object;
};
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wundefined-var-template"
#pragma GCC diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern const named<T> only_named;

template <class Member>
struct address {
  const Member* member;
};
template <class Member>
address(const Member*) -> address<Member>;

// Compilers write "[with auto Where = ...{(& ...::Order::who)}; ...]", or "...{&....object.who}]".
template <auto Where>
consteval std::string_view name_at() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.rfind('}'));
  if (text.ends_with(')')) text.remove_suffix(1);
  return text.substr(text.find_last_of(":.&") + 1);
}

template <class T>
consteval auto names_of() {
  constexpr auto members = tie_members(only_named<T>.object);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{name_at<address{&std::get<I>(members)}>()...};
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(members)>>());
}
#pragma GCC diagnostic pop

}  // namespace parts

// Whether the functions here read it. A type that is empty has no members.
template <class T>
concept aggregate = std::is_class_v<T> && std::is_aggregate_v<T> && !parts::like_a_tuple<T>;

// How many members the aggregate has.
template <aggregate T>
inline constexpr std::size_t member_count = parts::count_members<T>();

// Refers to the members, in their order. Lifetime: as the object.
template <class T>
requires aggregate<std::remove_const_t<T>>
constexpr auto tie_members(T& object) noexcept {
  static_assert(!parts::has_base<std::remove_const_t<T>>,
                "troupe: a struct with a base class cannot be read member by member; make the base "
                "a member");
  return parts::tie_members(object);
}

// The names of the members, in their order. Lifetime: as the program.
template <aggregate T>
inline constexpr auto member_names = parts::names_of<T>();

// The type of the member with this index.
template <aggregate T, std::size_t I>
using member_type = std::remove_reference_t<
    std::tuple_element_t<I, decltype(parts::tie_members(std::declval<T&>()))>>;

// Calls call(name, member) for each member, in their order.
template <class T, class Call>
requires aggregate<std::remove_const_t<T>>
constexpr void for_each_member(T& object, Call&& call) {
  const auto members = reflect::tie_members(object);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (static_cast<void>(call(member_names<std::remove_const_t<T>>[I], std::get<I>(members))), ...);
  }
  (std::make_index_sequence<member_count<std::remove_const_t<T>>>());
}

}  // namespace troupe::reflect
