// result_of: the result of a coroutine or a promise: nothing yet, a value, or an exception.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe::tasks {

// The type in which a result is stored, also for void and references.
struct nothing {};
template <class T>
using stored =
    std::conditional_t<std::is_void_v<T>, nothing,
                       std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

// Returns the exception that the step throws, or null. Copying or moving a value may throw.
template <class Step>
std::exception_ptr failure_of(Step step) noexcept {
  try {
    step();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// A slot for nothing, a value, or an exception. Thread: one at a time.
template <class T>
class result_of {
 public:
  template <class... Value>
  void set(Value&&... value) {
    if constexpr (std::is_reference_v<T>) {
      content_.template emplace<1>(std::addressof(value)...);
    } else {
      content_.template emplace<1>(std::forward<Value>(value)...);
    }
  }
  void fail(std::exception_ptr what) noexcept { content_.template emplace<2>(std::move(what)); }

  void reset() noexcept { content_.template emplace<0>(); }

  bool there() const noexcept { return content_.index() != 0; }
  bool failed() const noexcept { return content_.index() == 2; }
  // The exception, or null if there is none.
  std::exception_ptr failure() const noexcept {
    const auto* what = std::get_if<2>(&content_);
    return what == nullptr ? nullptr : *what;
  }
  // The same, moved out, for a caller that reports the failure; no other caller then need do so.
  std::exception_ptr take_failure() noexcept {
    auto* what = std::get_if<2>(&content_);
    return what == nullptr ? nullptr : std::exchange(*what, nullptr);
  }

  // The value, which stays here. Throws a copy of the exception.
  const stored<T>& value() const {
    if (const auto* what = std::get_if<2>(&content_)) std::rethrow_exception(*what);
    return std::get<1>(content_);
  }

  // Moves the value out, or throws the exception.
  T take() {
    if (auto* what = std::get_if<2>(&content_)) std::rethrow_exception(std::move(*what));
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*std::get<1>(content_));
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(std::get<1>(content_));
    }
  }

  static_assert(alignof(stored<T>) <= alignof(std::max_align_t),
                "troupe: the result of a task, a promise or an ask lies at 16 bytes; put one that "
                "is over-aligned into a std::unique_ptr");

 private:
  std::variant<std::monostate, stored<T>, std::exception_ptr> content_;
};

}  // namespace troupe::tasks
