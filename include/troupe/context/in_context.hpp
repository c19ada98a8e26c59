// in_context<T>: a handle to an object that lives in a context.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>

namespace troupe {

class context;
template <class T>
struct is_sendable;

// The object is destroyed with its context, or by a rollback. The handle must therefore stay where
// it was made: it cannot be copied, moved, stored in a container, or sent. To let an object live
// longer, persist or promote it (troupe/context/persist.hpp). A function that uses the object takes
// `in_context<T>&` or `T&`.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     auto name =
//         work->make<std::pmr::string>("a name that is longer than a string holds by itself");
//     troupe::persisted<std::pmr::string> kept = troupe::persist(name);
//     work.release();
//     std::cout << *kept << '\n';
template <class T>
class in_context {
 public:
  in_context(const in_context&) = delete;
  in_context& operator=(const in_context&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  T* get() const noexcept { return object_; }

 private:
  friend context;
  explicit in_context(T& object) noexcept : object_(std::addressof(object)) {}
  T* const object_;
};

template <class T>
struct is_sendable<in_context<T>> : std::false_type {};

}  // namespace troupe
