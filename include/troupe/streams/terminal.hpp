// The ends of pipes: for_each, collect, fold, first, count. Each makes a task of a stream.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/sequence.hpp"
#include "troupe/task/task.hpp"

namespace troupe::streams {

namespace detail {

template <class T, class F>
task<> for_each(async_generator<T> stream, F f) {
  while (auto value = co_await stream.next()) {
    if constexpr (tasks::awaitable<std::remove_reference_t<std::invoke_result_t<F&, T>>>) {
      auto later = std::invoke(f, std::move(*value));
      co_await std::move(later);
    } else {
      std::invoke(f, std::move(*value));
    }
  }
}

template <class Container, class T>
task<Container> collect(async_generator<T> stream) {
  Container all;
  while (auto value = co_await stream.next()) {
    if constexpr (requires { all.push_back(std::move(*value)); }) {
      all.push_back(std::move(*value));
    } else {
      all.insert(std::move(*value));
    }
  }
  co_return all;
}

template <class T, class Value, class F>
task<Value> fold(async_generator<T> stream, Value value, F f) {
  while (auto item = co_await stream.next()) {
    using given = std::invoke_result_t<F&, Value, T>;
    if constexpr (tasks::awaitable<std::remove_reference_t<given>>) {
      auto later = std::invoke(f, std::move(value), std::move(*item));
      value = co_await std::move(later);
    } else {
      value = std::invoke(f, std::move(value), std::move(*item));
    }
  }
  co_return value;
}

template <class T>
task<std::optional<T>> first(async_generator<T> stream) {
  std::optional<T> value = co_await stream.next();
  co_return value;
}

template <class T>
task<std::size_t> count(async_generator<T> stream) {
  std::size_t n = 0;
  while (auto value = co_await stream.next()) ++n;
  co_return n;
}

}  // namespace detail

// All of them return a task, which runs when it is awaited or spawned:
// `co_await (source | streams::for_each(f))`. The task throws an exception of the stream or of a
// given function. It requests the next value when the last one was processed. GCC 12: name a lambda
// that captures more than plain values before the expression that has the co_await.
//
// Calls f(value) for each value, and awaits the result if it is an awaitable.
//
// Example:
//     troupe::task<> show() {
//       namespace streams = troupe::streams;
//       co_await (std::views::iota(0, 5) | streams::filter([](int n) { return n % 2 == 0; }) |
//                 streams::for_each([](int n) { std::cout << n << '\n'; }));
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show());
//       rt.run();
//     }
template <class F>
auto for_each(F f) {
  return adaptor([f = std::move(f)]<class T>(async_generator<T> stream) mutable {
    return detail::for_each(std::move(stream), std::move(f));
  });
}
// Returns a container of all values: a std::vector, or `collect<std::set<int>>()`.
template <class Container>
auto collect() {
  return adaptor([]<class T>(async_generator<T> stream) {
    return detail::collect<Container>(std::move(stream));
  });
}
inline auto collect() {
  return adaptor([]<class T>(async_generator<T> stream) {
    return detail::collect<std::vector<T>>(std::move(stream));
  });
}
// Returns f(f(f(value, first), second), …); each call of f may return an awaitable.
template <class Value, class F>
auto fold(Value value, F f) {
  return adaptor(
      [value = std::move(value), f = std::move(f)]<class T>(async_generator<T> stream) mutable {
        return detail::fold(std::move(stream), std::move(value), std::move(f));
      });
}
// Returns the first value and ends the stream; empty if there is none.
inline auto first() {
  return adaptor(
      []<class T>(async_generator<T> stream) { return detail::first(std::move(stream)); });
}
// Returns the number of values.
inline auto count() {
  return adaptor(
      []<class T>(async_generator<T> stream) { return detail::count(std::move(stream)); });
}

}  // namespace troupe::streams
