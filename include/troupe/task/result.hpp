// result_of: the result of a coroutine or a promise: nothing yet, a value, or an exception.
#pragma once

#include "troupe/base/language.hpp"
#include "troupe/base/platform.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe::tasks {

// The type in which a result is stored; void and references have a substitute.
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

// Counts and writes an exception that no code can get any longer
// (docs/protocols/dropped_errors.md). Thread: any.
void report_dropped(std::exception_ptr failure) noexcept;

// Throws cancelled: the result of a task whose call was cancelled before it began.
[[noreturn]] void throw_not_begun();

// An exception on its way to the code that gets it. If it is destroyed before, it is reported.
class untaken_error {
 public:
  explicit untaken_error(std::exception_ptr failure = nullptr) noexcept
      : failure_(std::move(failure)) {}
  untaken_error(const untaken_error&) = delete;
  untaken_error& operator=(const untaken_error&) = delete;
  ~untaken_error() {
    if (failure_ != nullptr && !is_shared_) [[unlikely]]
      report_dropped(std::move(failure_));
  }
  void set(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }
  bool there() const noexcept { return failure_ != nullptr; }
  const std::exception_ptr& look() const noexcept { return failure_; }
  // For code that gives it to its receiver, which may then drop it.
  std::exception_ptr take() noexcept { return std::exchange(failure_, nullptr); }
  // The same; a copy stays here for another receiver.
  const std::exception_ptr& share() noexcept {
    is_shared_ = true;
    return failure_;
  }

 private:
  std::exception_ptr failure_;
  bool is_shared_ = false;
};

// A slot for nothing, a value, or an exception. Thread: one at a time.
template <class T>
class result_of {
 public:
  result_of() noexcept = default;
  result_of(const result_of&) = delete;
  result_of& operator=(const result_of&) = delete;
  template <class... Value>
  void set(Value&&... value) {
    if constexpr (std::is_reference_v<T>) {
      content_.template emplace<1>(std::addressof(value)...);
    } else {
      content_.template emplace<1>(std::forward<Value>(value)...);
    }
  }
  void fail(std::exception_ptr failure) noexcept {
    content_.template emplace<2>(std::move(failure));
  }

  void reset() noexcept { content_.template emplace<0>(); }

  bool there() const noexcept { return content_.index() != 0; }
  bool failed() const noexcept { return content_.index() == 2; }
  // The exception, or null if there is none. This does not take it.
  std::exception_ptr failure() const noexcept {
    const auto* failed = std::get_if<2>(&content_);
    return failed == nullptr ? nullptr : failed->look();
  }
  // The same, moved out, for a caller that passes it on or reports it.
  std::exception_ptr take_failure() noexcept {
    auto* failed = std::get_if<2>(&content_);
    return failed == nullptr ? nullptr : failed->take();
  }
  // A copy, for a caller that passes it on or reports it, while take() can still throw it.
  std::exception_ptr share_failure() noexcept {
    auto* failed = std::get_if<2>(&content_);
    return failed == nullptr ? nullptr : failed->share();
  }

  // The value, which stays here. Throws a copy of the exception.
  const stored<T>& value() const {
    if (const auto* failed = std::get_if<2>(&content_)) std::rethrow_exception(failed->look());
    return std::get<1>(content_);
  }

  // Moves the value out, or throws the exception; `cancelled` if there is neither.
  T take() {
    if (content_.index() != 1) [[unlikely]]
      throw_missing();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*std::get<1>(content_));
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(std::get<1>(content_));
    }
  }

  [[noreturn]] TROUPE_NOINLINE void throw_missing() {
    if (auto* failed = std::get_if<2>(&content_)) std::rethrow_exception(failed->take());
    throw_not_begun();
  }

  static_assert(alignof(stored<T>) <= alignof(std::max_align_t),
                "troupe: the result of a task, a promise or an ask is aligned to 16 bytes; put an "
                "over-aligned result into a std::unique_ptr");

 private:
  std::variant<std::monostate, stored<T>, untaken_error> content_;
};

}  // namespace troupe::tasks
