// unique_function: a callable object of any type that matches a signature. It can be moved but not
// copied, hence its callable may be movable only. It does the same as std::move_only_function of
// C++23; the library's functions take this type instead, for programs in C++20 and in C++23 then
// call the same functions.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace troupe {

template <class Signature>
class unique_function;

namespace base {

// A wrapper of another library or of this one, which may be empty: std::function<void()> and
// others.
template <class T>
inline constexpr bool wraps_signature = false;
template <template <class...> class Wrapper, class Signature>
inline constexpr bool wraps_signature<Wrapper<Signature>> =
    std::is_function_v<Signature>&& requires(const Wrapper<Signature>& wrapper) {
  wrapper == nullptr;
};

template <class T>
inline constexpr bool may_be_empty =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || wraps_signature<T>;

}  // namespace base

// A parameter of this type takes lambdas, pointers to functions, std::function and other callables.
// Cost: a target of up to 24 bytes that moves without throwing lies inside the object; a larger one
// takes one allocation. A call is one call through a pointer.
// A null pointer, nullptr or an empty wrapper gives an empty unique_function, and so does moving
// from it. An empty one must not be called.
//
// Example:
//     troupe::unique_function<int(int)> add = [kept = std::make_unique<int>(40)](int more) {
//       return *kept + more;
//     };
//     std::cout << add(2) << '\n';
template <class Result, class... Args>
class unique_function<Result(Args...)> {
 public:
  unique_function() noexcept = default;
  unique_function(std::nullptr_t) noexcept {}

  template <class Callable, class Target = std::decay_t<Callable>>
  requires(!std::is_same_v<Target, unique_function> &&
           std::is_invocable_r_v<Result, Target&, Args...>) unique_function(Callable&& callable) {
    if constexpr (base::may_be_empty<std::remove_cvref_t<Callable>>) {
      if (callable == nullptr) return;
    }
    if constexpr (is_inside<Target>)
      ::new (static_cast<void*>(storage_.bytes)) Target(std::forward<Callable>(callable));
    else
      storage_.outside = new Target(std::forward<Callable>(callable));
    call_ = &call<Target>;
    manage_ = &manage<Target>;
  }

  unique_function(unique_function&& other) noexcept { take(other); }
  unique_function& operator=(unique_function&& other) noexcept {
    if (this == &other) return *this;
    // The target may contain `other`, and its destructor may use this object.
    unique_function fresh(std::move(other)), old(std::move(*this));
    take(fresh);
    return *this;
  }
  ~unique_function() { manage_(storage_, nullptr); }

  Result operator()(Args... args) { return call_(storage_, std::forward<Args>(args)...); }

  explicit operator bool() const noexcept { return call_ != nullptr; }
  friend bool operator==(const unique_function& function, std::nullptr_t) noexcept {
    return !function;
  }

 private:
  // As large as the buffer of libstdc++'s std::move_only_function: a pointer to a member function
  // and its object fit.
  union storage {
    void* outside;
    alignas(void*) std::byte bytes[3 * sizeof(void*)];
  };

  // An argument by value is not moved twice.
  template <class Arg>
  using passed = std::conditional_t<std::is_scalar_v<Arg>, Arg, Arg&&>;

  template <class Target>
  static constexpr bool is_inside =
      sizeof(Target) <= sizeof(storage) &&
      alignof(Target) <= alignof(storage) && std::is_nothrow_move_constructible_v<Target>;

  template <class Target>
  static Target& target_in(storage& source) noexcept {
    if constexpr (is_inside<Target>)
      return *std::launder(static_cast<Target*>(static_cast<void*>(source.bytes)));
    else
      return *static_cast<Target*>(source.outside);
  }

  template <class Target>
  static Result call(storage& source, passed<Args>... args) {
    // The result may need a conversion.
    if constexpr (std::is_same_v<std::invoke_result_t<Target&, Args...>, Result>)
      return std::invoke(target_in<Target>(source), std::forward<Args>(args)...);
    else
      return static_cast<Result>(
          std::invoke(target_in<Target>(source), std::forward<Args>(args)...));
  }

  // Moves the target of `source` into `destination`, or destroys it if `destination` is null.
  template <class Target>
  static void manage(storage& source, storage* destination) noexcept {
    if constexpr (is_inside<Target>) {
      Target& target = target_in<Target>(source);
      if (destination != nullptr)
        ::new (static_cast<void*>(destination->bytes)) Target(std::move(target));
      std::destroy_at(&target);
    } else if (destination != nullptr) {
      destination->outside = source.outside;
    } else {
      delete static_cast<Target*>(source.outside);
    }
  }

  // *this is empty. No branch asks whether there is a target: the empty function costs less.
  void take(unique_function& other) noexcept {
    manage_ = std::exchange(other.manage_, &manage_nothing);
    manage_(other.storage_, &storage_);
    call_ = std::exchange(other.call_, nullptr);
  }

  static void manage_nothing(storage&, storage*) noexcept {}

  storage storage_;
  Result (*call_)(storage&, passed<Args>...) = nullptr;
  void (*manage_)(storage& source, storage* destination) noexcept = &manage_nothing;
};

}  // namespace troupe
