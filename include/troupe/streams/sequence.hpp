// sequence: types that can be made an async_generator, and the pipe that puts adaptors behind them.
//
// A stream has `next()`, an awaitable of a std::optional that is empty at the end. Adaptors and
// terminal operations follow a `|`: `source | streams::map(f) | streams::collect()`. A source is a
// stream, a channel or a range.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/generator.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/when.hpp"

namespace troupe::streams {

// The result of co_await.
template <class Awaitable>
using awaited =
    std::remove_cvref_t<decltype(tasks::awaiter_of(std::declval<Awaitable>()).await_resume())>;

// Whether the type is an async_generator.
template <class T>
inline constexpr bool is_async_generator = false;
template <class T>
inline constexpr bool is_async_generator<async_generator<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// An object whose next() returns an awaitable of a std::optional.
template <class S>
concept sequence = requires(std::remove_cvref_t<S>& stream) {
  stream.next();
  requires is_optional<awaited<decltype(stream.next())>>;
};
template <class S>
concept receives = requires(const std::remove_cvref_t<S>& stream) {
  stream.receive();
  requires is_optional<awaited<decltype(stream.receive())>>;
};

namespace detail {

template <class S, class T = typename awaited<decltype(std::declval<S&>().next())>::value_type>
async_generator<T> of_sequence(S stream) {
  while (auto value = co_await stream.next()) co_yield std::move(*value);
}
template <class S, class T = typename awaited<decltype(std::declval<S&>().receive())>::value_type>
async_generator<T> of_channel(S channel) {
  while (auto value = co_await channel.receive()) co_yield std::move(*value);
}
template <class Range, class T = std::ranges::range_value_t<Range>>
async_generator<T> of_range(Range range) {
  for (auto&& value : range) co_yield std::forward<decltype(value)>(value);
}
template <class Container, class T = std::ranges::range_value_t<Container>>
async_generator<T> of_container(Container container) {
  for (auto& value : container) co_yield std::move(value);
}

}  // namespace detail

// Makes a stream of
//   a range: a generator, a container or a view; a container with a name is used where it is, and
//     must live as long as the stream;
//   a channel or its receiver: ends when the channel is closed and empty. A wait that is given up
//     takes no value;
//   an object with next(), which is moved in.
// A stream remains unchanged. Cost: a frame, and about 5 ns more for each value.
//
// Example:
//     troupe::task<> show() {
//       auto all = troupe::streams::from(std::vector{1, 2, 3});
//       while (auto one = co_await all.next()) std::cout << *one << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show());
//       rt.run();
//     }
template <class Source>
auto from(Source&& source) {
  using plain = std::remove_cvref_t<Source>;
  if constexpr (is_async_generator<plain> || (sequence<plain> && !receives<plain>)) {
    static_assert(!std::is_lvalue_reference_v<Source>,
                  "troupe: streams: a stream is moved: std::move(it) | ..., or "
                  "streams::borrow(it) | ... to use it afterwards");
    if constexpr (std::is_lvalue_reference_v<Source>) {
      return;
    } else if constexpr (is_async_generator<plain>) {
      return plain(std::move(source));
    } else {
      return detail::of_sequence(plain(std::move(source)));
    }
  } else if constexpr (receives<plain>) {
    return detail::of_channel(plain(std::forward<Source>(source)));
  } else {
    static_assert(std::ranges::input_range<plain>,
                  "troupe: streams: a source is a stream (with next()), a channel or a range");
    if constexpr (!std::is_lvalue_reference_v<Source> && !std::is_const_v<Source> &&
                  !std::ranges::view<plain>) {
      return detail::of_container(plain(std::move(source)));
    } else {
      return detail::of_range(std::views::all(std::forward<Source>(source)));
    }
  }
}

// A stream of the values of another stream, which remains usable afterwards and must live until
// then: `streams::borrow(all) | streams::take(3) | streams::collect()` leaves the rest in it.
// Dropping the borrower loses no value that it has not yielded, unless the borrower reads ahead.
template <sequence S>
auto borrow(S& stream) {
  struct borrowed {
    explicit borrowed(S& stream) noexcept : from(&stream) {}
    auto next() { return from->next(); }
    S* from;
  };
  return detail::of_sequence(borrowed(stream));
}

// Anything that a stream reads from: generators, sequences, receivers of channels, ranges.
template <class Source>
concept source = is_async_generator<std::remove_cvref_t<Source>> || sequence<Source> ||
    receives<Source> || std::ranges::input_range<std::remove_cvref_t<Source>>;

// The type of a source's values.
template <class Source>
using element = typename decltype(from(std::declval<Source>()))::value_type;

// The right side of a `|`: a function of a stream.
template <class Function>
class adaptor {
 public:
  explicit adaptor(Function does) : does_(std::move(does)) {}
  template <source Source>
  friend auto operator|(Source&& input, adaptor self) {
    return std::move(self.does_)(from(std::forward<Source>(input)));
  }
  // Adaptors in a row, without a source: an adaptor again.
  template <class Other>
  friend auto operator|(adaptor first, adaptor<Other> second) {
    return streams::adaptor([first = std::move(first), second = std::move(second)]<class T>(
                                async_generator<T> stream) mutable {
      return std::move(stream) | std::move(first) | std::move(second);
    });
  }

 private:
  Function does_;
};

}  // namespace troupe::streams
