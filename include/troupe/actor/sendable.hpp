// sendable: which types may travel in a message.
//
// A message is handled later, and possibly on another thread. An argument that refers to an object
// of the sender would dangle or race. Such an argument is a compile error that names the type. If
// the object is certain to outlive the message, the sender wraps the argument in `unchecked`.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
// brings enable_view; the whole of <ranges> would slow down the build of each program
#include <span>
#include <type_traits>
#include <vector>

namespace troupe {

// Lets an argument pass that the compiler cannot see to be safe. The sender promises that the
// object to which `value` refers outlives the message, and that no code changes it meanwhile. A
// method's parameter must be an `unchecked` as well; a constructor's parameter may be of the
// wrapped type. T may be a reference: troupe::unchecked<Log&>{log}.
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

// Also true for an iterator that computes its values, since most of these compute them from
// elements of another object.
template <class T>
consteval bool is_iterator() {
  // A check of `*it` alone would be a compile error for std::unique_ptr<void, D>, hence the check
  // of `++it` first.
  if constexpr (requires(T & it) { ++it; }) {
    if constexpr (std::input_or_output_iterator<T>)
      return !std::is_same_v<std::iter_reference_t<T>, T>;
  }
  return false;
}

// A reference to one bit of a std::bitset, or of a similar class.
template <class T>
concept bit_reference = requires(T& bit) {
  { bit.flip() } -> std::same_as<T&>;
  { ~bit } -> std::same_as<bool>;
};

// std::unique_lock and similar classes: the mutex belongs to another object, and only the thread
// that locked it may unlock it.
template <class T>
concept lock_reference = requires(T& lock) {
  { lock.owns_lock() } -> std::same_as<bool>;
  lock.mutex();
};

// std::coroutine_handle: a pointer that owns nothing.
template <class T>
concept coroutine_reference = requires(T& handle) {
  { handle.address() } -> std::same_as<void*>;
  handle.resume();
};

// An allocator of std::pmr: the allocator and each object that holds one refer to a memory
// resource, for instance a context.
template <class T>
concept memory_reference = requires(const T& allocator) {
  allocator.resource()->is_equal(*allocator.resource());
};

// Whether an object of this class refers to something that it does not own, as far as the compiler
// can see. A view that owns its elements (std::ranges::owning_view, and views built on it) can only
// be moved; this distinguishes it from other views.
template <class T>
consteval bool borrows() {
  // An incomplete class appears only as a part of another type (std::unique_ptr<T>); it is never
  // sent itself.
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

// Whether the type parameters of a class template are sendable if the template also has value
// parameters, like std::array and vectors of a fixed capacity. This trait is separate from
// is_sendable because there a specialization for a particular class of that shape would not be more
// special than these.
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

// Whether a message may hold a parameter of this type. False for views, iterators, locks, coroutine
// handles, and objects with an allocator of std::pmr; for containers and wrappers the answer
// depends on their element types. Specialize it for a type of yours: std::false_type for a view
// that does not look like one, std::true_type for an owning type that only looks like a view.
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
