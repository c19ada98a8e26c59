// sendable: what may travel in a message.
//
// A message is handled later, on another thread: an argument that refers to something of the
// sender's would dangle or race. Such arguments are compile errors that name the type; what is
// known to outlive the message goes in an explicit wrapper.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>  // brings enable_view; all of <ranges> would cost every program
#include <type_traits>
#include <vector>

namespace troupe {

// Lets one argument through that the compiler cannot see to be safe: the sender vouches that what
// `value` refers to outlives the message, and that nobody changes it meanwhile. A method's
// parameter must say it, too; a constructor may take what it holds. T may be a reference:
// troupe::unchecked<Log&>{log}.
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
  constexpr operator T() const requires std::is_copy_constructible_v<T> { return value; }
};
template <class T>
unchecked(T) -> unchecked<T>;

namespace detail {

// Also one that makes its values: what it makes them of is mostly somebody else's.
template <class T>
consteval bool is_iterator() {
  // To look for `*it` alone is an error for std::unique_ptr<void, D>.
  if constexpr (requires(T & it) { ++it; }) {
    if constexpr (std::input_or_output_iterator<T>)
      return !std::is_same_v<std::iter_reference_t<T>, T>;
  }
  return false;
}

// One bit of a std::bitset, or of what is made like it.
template <class T>
concept bit_reference = requires(T& bit) {
  { bit.flip() } -> std::same_as<T&>;
  { ~bit } -> std::same_as<bool>;
};

// std::unique_lock and its like: the mutex is somebody else's, and only the thread that locked it
// may unlock it.
template <class T>
concept lock_reference = requires(T& lock) {
  { lock.owns_lock() } -> std::same_as<bool>;
  lock.mutex();
};

// std::coroutine_handle: a pointer, which owns nothing.
template <class T>
concept coroutine_reference = requires(T& handle) {
  { handle.address() } -> std::same_as<void*>;
  handle.resume();
};

// An allocator of std::pmr: it and what it is part of refer to a memory resource, of a context for
// instance.
template <class T>
concept memory_reference = requires(const T& allocator) {
  allocator.resource()->is_equal(*allocator.resource());
};

// Whether an object of this class refers to something that it does not own, as far as that can be
// seen. A view that owns what it shows (std::ranges::owning_view, and what is built on it) can only
// be moved.
template <class T>
consteval bool borrows() {
  // An incomplete class is a part of something (std::unique_ptr<T>), never sent itself.
  if constexpr (std::is_class_v<T> && requires { sizeof(T); }) {
    if constexpr (std::ranges::enable_view<T>)
      return std::ranges::enable_borrowed_range<T> || std::is_copy_constructible_v<T>;
    return is_iterator<T>() || bit_reference<T> || lock_reference<T> || coroutine_reference<T> ||
           memory_reference<T> || std::is_same_v<T, std::vector<bool>::reference>;
  }
  return false;
}

}  // namespace detail

template <class T>
struct is_sendable;

namespace detail {

// Whether the types travel that a class template takes beside values, as std::array does and
// vectors of a fixed capacity. Apart from is_sendable, whose specializations for such a class would
// be no more special than these.
template <class T>
struct parts_travel : std::true_type {};
template <template <class, auto, auto...> class Wrapper, class Part, auto Value, auto... Values>
struct parts_travel<Wrapper<Part, Value, Values...>> : is_sendable<Part> {};
template <template <class, class, auto, auto...> class Wrapper, class First, class Second,
          auto Value, auto... Values>
struct parts_travel<Wrapper<First, Second, Value, Values...>>
    : std::conjunction<is_sendable<First>, is_sendable<Second>> {};
template <template <class, auto, class, class...> class Wrapper, class First, auto Value,
          class... Parts>
struct parts_travel<Wrapper<First, Value, Parts...>>
    : std::conjunction<is_sendable<First>, is_sendable<Parts>...> {};
template <template <auto, class, class...> class Wrapper, auto Value, class... Parts>
struct parts_travel<Wrapper<Value, Parts...>> : std::conjunction<is_sendable<Parts>...> {};

}  // namespace detail

// Whether a parameter of this type may travel in a message. Views, iterators, locks, coroutines'
// handles and what has an allocator of std::pmr may not; containers and wrappers are looked into.
// Specialize it for a type of yours: std::false_type for a view that does not look like one,
// std::true_type for a handle that only looks like one.
//
// Example (declarations):
//     struct token_view { const char* text; };
//     template <> struct troupe::is_sendable<token_view> : std::false_type {};
template <class T>
struct is_sendable : std::bool_constant<detail::parts_travel<T>::value && !detail::borrows<T>()> {};

template <class T>
struct is_sendable<const T> : is_sendable<T> {};
template <class T>
struct is_sendable<T*> : std::is_function<T> {};
template <class T>
struct is_sendable<T&> : std::false_type {};
template <class T>
struct is_sendable<T&&> : std::false_type {};
template <class T>
struct is_sendable<T[]> : is_sendable<T> {};
template <class T, std::size_t Size>
struct is_sendable<T[Size]> : is_sendable<T> {};
template <class T>
struct is_sendable<std::reference_wrapper<T>> : std::false_type {};
template <class T>
struct is_sendable<std::atomic_ref<T>> : std::false_type {};
template <class T>
struct is_sendable<std::initializer_list<T>> : std::false_type {};
template <class T>
struct is_sendable<unchecked<T>> : std::true_type {};
template <template <class...> class Wrapper, class... Parts>
struct is_sendable<Wrapper<Parts...>> : std::bool_constant<(is_sendable<Parts>::value && ...) &&
                                                           !detail::borrows<Wrapper<Parts...>>()> {
};

namespace detail {
template <class T>
inline constexpr bool sendable_v = is_sendable<T>::value;
}  // namespace detail

}  // namespace troupe
