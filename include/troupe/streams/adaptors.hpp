// Adaptors of streams that process one value after the other.
//
// All of them: Thread: the turns of the actor that takes the values. Order: as in the source. They
// read a value only when one is requested, and never ahead. Errors: next() throws an exception of
// the source or of a given function, and the stream then ends. Lifetime: they own their source and
// the given functions.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/select.hpp"
#include "troupe/streams/sequence.hpp"

namespace troupe::streams {

namespace detail {

template <class F, class... Args>
using plain_result = std::remove_cvref_t<std::invoke_result_t<F&, Args...>>;

// The result of a predicate that returns a bool or an awaitable of a bool.
template <class Predicate, class T>
inline constexpr bool waits =
    tasks::awaitable<std::remove_reference_t<std::invoke_result_t<Predicate&, T>>>;

template <class T, class F>
async_generator<plain_result<F, T>> map(async_generator<T> stream, F f) {
  while (auto value = co_await stream.next()) co_yield std::invoke(f, std::move(*value));
}

template <class T, class F>
async_generator<awaited<std::invoke_result_t<F&, T>>> then(async_generator<T> stream, F f) {
  while (auto item = co_await stream.next()) {
    auto later = std::invoke(f, std::move(*item));
    auto value = co_await std::move(later);
    co_yield std::move(value);
  }
}

template <class T, class F>
async_generator<T> filter(async_generator<T> stream, F f) {
  while (auto value = co_await stream.next()) {
    bool passes = false;
    if constexpr (waits<F, const T&>) {
      auto later = std::invoke(f, std::as_const(*value));
      passes = static_cast<bool>(co_await std::move(later));
    } else {
      passes = static_cast<bool>(std::invoke(f, std::as_const(*value)));
    }
    if (passes) co_yield std::move(*value);
  }
}

template <class T>
async_generator<T> take(async_generator<T> stream, std::size_t most) {
  for (std::size_t n = 0; n < most; ++n) {
    auto value = co_await stream.next();
    if (!value) break;
    co_yield std::move(*value);
  }
}

template <class T>
async_generator<T> skip(async_generator<T> stream, std::size_t least) {
  for (std::size_t n = 0; n < least; ++n) {
    const auto skipped = co_await stream.next();
    if (!skipped) break;
  }
  while (auto value = co_await stream.next()) co_yield std::move(*value);
}

template <class T, class F>
async_generator<T> take_while(async_generator<T> stream, F f) {
  while (auto value = co_await stream.next()) {
    if (!std::invoke(f, std::as_const(*value))) break;
    co_yield std::move(*value);
  }
}

template <class T>
async_generator<T> until_stop(async_generator<T> stream, std::stop_token stop) {
  for (;;) {
    std::optional<T> value;
    try {
      value = co_await stream.next().stop(stop);
    } catch (const cancelled&) {
      if (!stop.stop_requested()) throw;
    }
    if (!value) break;
    co_yield std::move(*value);
  }
}

template <class T, class Given>
async_generator<T> until_done(async_generator<T> stream, task<Given> end) {
  side_task<Given> until(std::move(end));
  side_stream<T> all(std::move(stream));
  while (!all.has_ended()) {
    tasks::side_call* const both[] = {&until.side(), all.side()};
    co_await select(both);
    if (until.is_done()) {
      static_cast<void>(until.take());  // throws its exception, if any
      break;
    }
    if (auto value = all.take()) co_yield std::move(*value);
  }
}

}  // namespace detail

// A stream of f(value). The result of f may be an awaitable, which then() awaits and buffered()
// runs.
//
// Example:
//     troupe::task<> show() {
//       namespace streams = troupe::streams;
//       auto squares = std::views::iota(1, 4) | streams::map([](int n) { return n * n; });
//       while (auto one = co_await squares.next()) std::cout << *one << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show());
//       rt.run();
//     }
template <class F>
auto map(F f) {
  return adaptor([f = std::move(f)]<class T>(async_generator<T> stream) mutable {
    return detail::map(std::move(stream), std::move(f));
  });
}
// A stream of `co_await f(value)`, one after the other.
template <class F>
auto then(F f) {
  return adaptor([f = std::move(f)]<class T>(async_generator<T> stream) mutable {
    return detail::then(std::move(stream), std::move(f));
  });
}
// A stream of the values for which f(value) is true; f may return an awaitable of a bool.
template <class F>
auto filter(F f) {
  return adaptor([f = std::move(f)]<class T>(async_generator<T> stream) mutable {
    return detail::filter(std::move(stream), std::move(f));
  });
}
// A stream of the first `most` values; it ends without requesting another value.
inline auto take(std::size_t most) {
  return adaptor(
      [most]<class T>(async_generator<T> stream) { return detail::take(std::move(stream), most); });
}
// Omits the first values.
inline auto skip(std::size_t least) {
  return adaptor([least]<class T>(async_generator<T> stream) {
    return detail::skip(std::move(stream), least);
  });
}
// Ends at the first value for which f(value) is false; that value is dropped.
template <class F>
auto take_while(F f) {
  return adaptor([f = std::move(f)]<class T>(async_generator<T> stream) mutable {
    return detail::take_while(std::move(stream), std::move(f));
  });
}
// Ends when the awaitable (a task, a future, event.wait(), sleep_for) is done, or when a stop is
// requested, even while it waits for a value. next() throws an exception of the awaitable. The
// awaitable runs from the first next() on.
template <class Awaitable>
auto take_until(Awaitable end) {
  if constexpr (std::is_same_v<Awaitable, std::stop_token>) {
    return adaptor([end = std::move(end)]<class T>(async_generator<T> stream) mutable {
      return detail::until_stop(std::move(stream), std::move(end));
    });
  } else {
    static_assert(tasks::awaitable<Awaitable>,
                  "troupe: streams::take_until: it takes a std::stop_token or an awaitable");
    return adaptor(
        [end = tasks::make_branch(std::move(end))]<class T>(async_generator<T> stream) mutable {
          return detail::until_done(std::move(stream), std::move(end));
        });
  }
}

}  // namespace troupe::streams
