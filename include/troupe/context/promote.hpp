// promote: makes a deep copy of an object in a context; no part of the copy lies in the context.
// auto_escape: promotes small objects and persists large ones.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "troupe/context/persist.hpp"

namespace troupe {

// Whether a copy of T by its copy constructor refers to no part of the original. True for numbers
// and enums. Specialize it for a class of yours for which this holds. A class that has
// `allocator_type = std::pmr::polymorphic_allocator<>` and a copy constructor that takes an
// allocator needs no specialization.
//
// Example (declarations):
//     struct point { double x, y; };
//     template <> inline constexpr bool troupe::promoted_by_copy<point> = true;
template <class T>
inline constexpr bool promoted_by_copy = std::is_arithmetic_v<T> || std::is_enum_v<T>;

namespace contexts {

template <class T>
concept container = requires(const T& range) {
  typename T::allocator_type;
  typename T::value_type;
  range.begin();
  range.size();
};

template <class T>
concept any_string = container<T> && requires {
  typename T::traits_type;
};

// Whether the parts of a class can be promoted; promotes<T>() reads it. A struct, since it is
// specialized for classes that consist of parts.
template <class T>
struct promotes_parts
    : std::bool_constant<std::uses_allocator_v<T, std::pmr::polymorphic_allocator<>> &&
                         std::is_constructible_v<T, const T&, std::pmr::polymorphic_allocator<>>> {
};
template <class T>
consteval bool promotes() {
  if constexpr (promoted_by_copy<T>) {
    return true;
  } else if constexpr (container<T>) {
    return promotes<typename T::value_type>();
  } else {
    return promotes_parts<T>::value;
  }
}
template <class T>
struct promotes_parts<const T> : std::bool_constant<promotes<T>()> {};
template <class... Part>
struct promotes_parts<std::pair<Part...>>
    : std::bool_constant<(promotes<std::remove_cv_t<Part>>() && ...)> {};
template <class... Part>
struct promotes_parts<std::tuple<Part...>> : std::bool_constant<(promotes<Part>() && ...)> {};
template <class... Part>
struct promotes_parts<std::variant<Part...>> : std::bool_constant<(promotes<Part>() && ...)> {};
template <class T>
struct promotes_parts<std::optional<T>> : std::bool_constant<promotes<T>()> {};
template <class T, std::size_t Size>
struct promotes_parts<std::array<T, Size>> : std::bool_constant<promotes<T>()> {};
template <>
struct promotes_parts<std::monostate> : std::true_type {};

// The approximate number of bytes that the object has outside of itself; counting stops soon after
// `at_most`.
template <class T>
std::size_t bytes_behind(const T& value, std::size_t at_most) {
  if constexpr (requires {
                  { value.promotion_bytes() } -> std::convertible_to<std::size_t>;
                }) {
    return value.promotion_bytes();
  } else if constexpr (container<T>) {
    std::size_t bytes = value.size() * sizeof(typename T::value_type);
    if constexpr (!std::is_trivially_copyable_v<typename T::value_type>) {
      for (const auto& part : value) {
        if (bytes > at_most) break;
        bytes += bytes_behind(part, at_most);
      }
    }
    return bytes;
  } else if constexpr (requires {
                         value.first;
                         value.second;
                       }) {
    return bytes_behind(value.first, at_most) + bytes_behind(value.second, at_most);
  } else {
    return 0;
  }
}

template <class T>
struct box : share {
  explicit box(const T& copied)
      : share([](share& self) noexcept { delete static_cast<box*>(&self); }),
        value(std::make_obj_using_allocator<T>(
            std::pmr::polymorphic_allocator<>(std::pmr::new_delete_resource()), copied)) {}
  const T value;
};

}  // namespace contexts

// True for numbers, enums, strings, containers of promotable objects, pairs and similar classes,
// and classes that declare it.
template <class T>
concept promotable = contexts::promotes<T>();

// Returns a deep copy whose memory comes from `to`. Parts that take no allocator
// (std::optional<std::pmr::string>) use the default one. Throws std::bad_alloc.
//
// Example:
//     std::pmr::vector<std::pmr::string> kept;
//     {
//       troupe::owned_context work = troupe::make_context();
//       auto words = work->make<std::pmr::vector<std::pmr::string>>();
//       words->emplace_back("a word that is longer than a string holds by itself");
//       kept = troupe::promote(words);
//     }
//     std::cout << kept.front() << '\n';
template <class T>
[[nodiscard]] T promote(const T& value,
                        std::pmr::memory_resource* to = std::pmr::new_delete_resource()) {
  static_assert(promotable<T>,
                "troupe: promote: a deep copy of T cannot be made: it is or has a pointer, a view "
                "or a class that does not say that its "
                "copies are deep (troupe::promoted_by_copy); persist() it instead");
  return std::make_obj_using_allocator<T>(std::pmr::polymorphic_allocator<>(to), value);
}
template <class T>
[[nodiscard]] T promote(const in_context<T>& handle,
                        std::pmr::memory_resource* to = std::pmr::new_delete_resource()) {
  return promote(*handle, to);
}

// Returns a deep copy as another type of the same shape: a std::pmr::string as a std::string, a
// std::pmr::map of them as a std::map. The copy may be sent in a message.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     auto name = work->make<std::pmr::string>("in the context");
//     const auto kept = troupe::promote_to<std::string>(name);
//     std::cout << kept << '\n';
template <class To, class From>
[[nodiscard]] To promote_to(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return promote(value);
  } else if constexpr (contexts::any_string<To> && contexts::any_string<From>) {
    return To(value.data(), value.size());
  } else if constexpr (contexts::container<To> && contexts::container<From>) {
    To copy;
    for (const auto& part : value) {
      if constexpr (requires { typename To::mapped_type; }) {
        copy.emplace_hint(copy.end(), promote_to<typename To::key_type>(part.first),
                          promote_to<typename To::mapped_type>(part.second));
      } else {
        copy.insert(copy.end(), promote_to<typename To::value_type>(part));
      }
    }
    return copy;
  } else {
    static_assert(promotable<From> && promotable<To>,
                  "troupe: promote_to: the value is or has a pointer, a view or a class that does "
                  "not say that its copies are deep "
                  "(troupe::promoted_by_copy); persist() it instead");
    return To(value);
  }
}
template <class To, class T>
[[nodiscard]] To promote_to(const in_context<T>& handle) {
  return promote_to<To>(*handle);
}

// The size in bytes up to which auto_escape() promotes, by default; above it a copy costs more than
// a rollback that keeps memory.
inline constexpr std::size_t promoted_bytes_max = 2048;

// Lets an object outlive its context in the cheaper way: as a copy if the object is promotable and
// has at most `bytes_max` bytes, with everything it owns; otherwise it is persisted where it is. A
// number, for example, does not keep a large context alive. Cost: as persist(), or of a copy.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     static_cast<void>(work->allocate(100 << 20));
//     troupe::persisted<int> answer = troupe::auto_escape(work->make<int>(42));
//     work.release();  // the 100 MiB are freed
//     std::cout << *answer << '\n';
template <class T>
[[nodiscard]] persisted<T> auto_escape(const in_context<T>& handle,
                                       std::size_t bytes_max = promoted_bytes_max) {
  if constexpr (promotable<T>) {
    if (sizeof(T) + contexts::bytes_behind(*handle, bytes_max) <= bytes_max) {
      auto* copy = new contexts::box<T>(*handle);
      return contexts::persisting::make<T>(copy->value, *copy);
    }
  }
  return persist(handle);
}

}  // namespace troupe
