// sendable: what may travel in a message.
//
// A message is handled later, on another thread: an argument that refers to something of the sender's
// would dangle or race. Such arguments are compile errors that name the type; what is known to outlive
// the message goes in an explicit wrapper.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

namespace troupe {

// Lets one argument through that the compiler cannot see to be safe: the sender vouches that what `value`
// refers to outlives the message, and that nobody changes it meanwhile.
//
// Example:
//     static const int table[] = {1, 2, 3};
//     struct Reader { void read(troupe::unchecked<const int*> p) { static_cast<void>(p.value); } };
//     troupe::runtime rt;
//     rt.spawn<Reader>().tell<&Reader::read>(troupe::unchecked{&table[0]});
//     rt.run();
template <class T>
struct unchecked {
  T value;
};
template <class T>
unchecked(T) -> unchecked<T>;

// Whether a parameter of this type may travel in a message. Containers and wrappers are looked into.
// Specialize it for a type of yours: std::false_type for a view, std::true_type for a handle that only
// looks like one.
//
// Example (declarations):
//     struct token_view { const char* text; };
//     template <> struct troupe::is_sendable<token_view> : std::false_type {};
template <class T>
struct is_sendable : std::true_type {};

template <class T>
struct is_sendable<const T> : is_sendable<T> {};
template <class T>
struct is_sendable<T*> : std::is_function<T> {};
template <class T>
struct is_sendable<T&> : std::false_type {};
template <class T>
struct is_sendable<std::reference_wrapper<T>> : std::false_type {};
template <class Char, class Traits>
struct is_sendable<std::basic_string_view<Char, Traits>> : std::false_type {};
template <class T, std::size_t Extent>
struct is_sendable<std::span<T, Extent>> : std::false_type {};
template <class T, std::size_t Size>
struct is_sendable<std::array<T, Size>> : is_sendable<T> {};
template <class T>
struct is_sendable<std::initializer_list<T>> : std::false_type {};
template <class T>
struct is_sendable<unchecked<T>> : std::true_type {};
template <template <class...> class Wrapper, class... Parts>
struct is_sendable<Wrapper<Parts...>> : std::bool_constant<(is_sendable<Parts>::value && ...)> {};

namespace detail {
template <class T>
inline constexpr bool sendable_v = is_sendable<T>::value;
}  // namespace detail

}  // namespace troupe
