// generator<T>: a coroutine that yields values one after the other, without waiting for anything.
#pragma once

#include "troupe/base/language.hpp"

#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "troupe/task/task.hpp"

namespace troupe {

template <class T>
class generator;

namespace streams {

// co_yield elements_of(generator, or any range) yields all its values.
template <class Range>
struct elements_of {
  explicit elements_of(Range&& given_range) noexcept : range(std::forward<Range>(given_range)) {}
  Range&& range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

// The type of a generator's values: a T& or T&& unchanged, a T as T&&.
template <class T>
using given = std::conditional_t<std::is_reference_v<T>, T, T&&>;

// A generator within a generator: the inner one's `outer` is the one that gives its elements. The
// outermost one, to which the iterator refers, keeps the innermost: an element costs the same at
// any depth. A loop resumes whichever is the innermost until there is a value, and another one
// destroys them: neither many inner generators, one after the other, nor deep ones need the stack
// (symmetric transfer is a call without optimization).
template <class T>
class generator_promise {
 public:
  static void* operator new(std::size_t bytes) { return tasks::allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    tasks::deallocate_frame(frame, bytes);
  }

  generator<T> get_return_object() noexcept;
  std::suspend_always initial_suspend() const noexcept { return {}; }
  struct to_outer {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<generator_promise> done) const noexcept {
      generator_promise& self = done.promise();
      if (self.outer_ != nullptr) self.root_->innermost_ = self.outer_;
    }
    void await_resume() const noexcept {}
  };
  to_outer final_suspend() const noexcept { return {}; }
  void return_void() const noexcept {}
  void unhandled_exception() {
    if (outer_ == nullptr) throw;
    failure_ = std::current_exception();
  }
  // A generator waits for nothing: async_generator may co_await.
  template <class Awaitable>
  std::suspend_never await_transform(Awaitable&&) = delete;

  std::suspend_always yield_value(given<T> value) noexcept {
    root_->value_ = std::addressof(value);
    return {};
  }
  // Yields a copy, which lives until the coroutine continues.
  struct copied {
    std::remove_cvref_t<T> value;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<generator_promise> giver) noexcept {
      giver.promise().root_->value_ = std::addressof(value);
    }
    void await_resume() const noexcept {}
  };
  copied yield_value(const std::remove_reference_t<T>& value) requires(
      std::is_rvalue_reference_v<given<T>>&& std::copy_constructible<std::remove_cvref_t<T>>) {
    return {value};
  }

  struct inside {
    generator<T> source;
    bool await_ready() const noexcept { return !source.handle_; }
    void await_suspend(std::coroutine_handle<generator_promise> outer) noexcept {
      generator_promise& inner = source.handle_.promise();
      inner.outer_ = &outer.promise();
      inner.outer_->inner_ = this;
      inner.root_ = outer.promise().root_;
      inner.root_->innermost_ = &inner;
    }
    void await_resume() {
      if (source.handle_ && source.handle_.promise().failure_ != nullptr)
        std::rethrow_exception(source.handle_.promise().failure_);
    }
  };
  inside yield_value(elements_of<generator<T>&&> elements) noexcept {
    return {std::move(elements.range)};
  }
  template <std::ranges::input_range Range>
  inside yield_value(elements_of<Range> elements) {
    return {all_of(std::ranges::begin(elements.range), std::ranges::end(elements.range))};
  }

  // Caller: the root's promise. Resumes until there is a value, or the end.
  void resume_innermost() {
    value_ = nullptr;
    do {
      handle_of(*innermost_).resume();
    } while (value_ == nullptr && !handle_of(*this).done());
  }
  // Caller: the root's promise. Destroys the generators within the root, the innermost first.
  void destroy_inner() noexcept {
    while (innermost_ != this) {
      generator_promise& inner = *innermost_;
      innermost_ = inner.outer_;
      innermost_->inner_->source.handle_ = nullptr;
      handle_of(inner).destroy();
    }
  }
  std::add_pointer_t<given<T>> value() const noexcept { return value_; }

 private:
  friend generator<T>;
  static std::coroutine_handle<generator_promise> handle_of(generator_promise& promise) noexcept {
    return std::coroutine_handle<generator_promise>::from_promise(promise);
  }
  template <class At, class End>
  static generator<T> all_of(At at, End end) {
    for (; at != end; ++at) co_yield *at;
  }

  generator_promise* outer_ = nullptr;
  generator_promise* root_ = this;
  generator_promise* innermost_ = this;  // of the root
  inside* inner_ = nullptr;              // which the body gives the values of
  std::add_pointer_t<given<T>> value_ = nullptr;
  std::exception_ptr failure_;
};

}  // namespace streams

// A coroutine that yields values by co_yield, and runs only while its user requests the next one.
// It is an input range, for std::views as well. `co_yield streams::elements_of(other)` yields all
// values of another generator or range; for recursive generators this costs the same at any depth.
//
// Thread: the calling one; any thread may use it, one at a time. Cost: a frame from the block pool,
// and about 2 ns a value. Errors: begin() or ++ throws an exception of the body, and the generator
// has then ended. Lifetime: it may be destroyed at any time; the body's objects are then destroyed.
// A value lives until the next ++. A body may not co_await: use async_generator for that.
//
// Example:
//     troupe::generator<int> countdown(int from) {
//       for (int i = from; i > 0; --i) co_yield i;
//     }
//     int main() {
//       for (int i : countdown(3)) std::cout << i << '\n';
//     }
template <class T>
class [[nodiscard]] generator : public std::ranges::view_interface<generator<T>> {
 public:
  using promise_type = streams::generator_promise<T>;

  generator() = default;  // empty
  generator(generator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  generator& operator=(generator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~generator() {
    if (!handle_) return;
    handle_.promise().destroy_inner();
    handle_.destroy();
  }

  class iterator {
   public:
    using value_type = std::remove_cvref_t<T>;
    using difference_type = std::ptrdiff_t;
    using reference = streams::given<T>;
    iterator() = default;
    iterator(iterator&&) = default;
    iterator& operator=(iterator&&) = default;

    reference operator*() const noexcept {
      return static_cast<reference>(*handle_.promise().value());
    }
    iterator& operator++() {
      handle_.promise().resume_innermost();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !handle_ || handle_.done(); }

   private:
    friend generator;
    explicit iterator(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
  };

  // Runs the body up to its first value. Call it once.
  iterator begin() {
    if (handle_) handle_.promise().resume_innermost();
    return iterator(handle_);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend promise_type;
  explicit generator(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

namespace streams {

template <class T>
generator<T> generator_promise<T>::get_return_object() noexcept {
  return generator<T>(std::coroutine_handle<generator_promise>::from_promise(*this));
}

}  // namespace streams

}  // namespace troupe
