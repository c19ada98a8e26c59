// Adaptors of streams that run several things at once: buffered, buffered_unordered, merge, zip.
//
// All of them: Thread: everything runs in the turns of the actor that takes the values, so it waits
// at once and computes in turns. What was begun runs on while the user does something else between
// two next(); nothing new is begun then. Errors: the first exception comes out of next(), ends the
// stream and cancels the rest. Lifetime: dropping the stream cancels everything that runs.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/select.hpp"
#include "troupe/streams/stream.hpp"
#include "troupe/task/when.hpp"

namespace troupe::streams {

void check_count(const char* who, std::size_t count);

namespace detail {

template <class Awaitable>
using branch_task = decltype(tasks::make_branch(std::declval<Awaitable>()));
template <class Task>
struct result_of_task;
template <class T>
struct result_of_task<task<T>> {
  using given = T;
  using value = tasks::value_of<T>;
};
template <class Awaitable>
using given_by = typename result_of_task<branch_task<Awaitable>>::given;
template <class Awaitable>
using value_by = typename result_of_task<branch_task<Awaitable>>::value;

// The awaitables of the stream that run now.
template <class Awaitable>
class running_tasks {
 public:
  // An empty deque has memory: std::bad_alloc.
  running_tasks(async_generator<Awaitable>&& of, std::size_t most)
      : from_(std::move(of)), most_(most) {}
  bool has_ended() const noexcept { return from_.has_ended() && all_.empty(); }
  // The next one whose result may be given: the first one, or any.
  std::optional<std::size_t> find_done(bool ordered) const noexcept {
    for (std::size_t i = 0; i < all_.size() && (!ordered || i == 0); ++i) {
      if (all_[i].is_done()) return i;
    }
    return std::nullopt;
  }
  value_by<Awaitable> take(std::size_t at) {
    side_task<given_by<Awaitable>> one = std::move(all_[at]);
    all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(at));
    return one.take();
  }
  // The side calls of which one must be ready before something can be done.
  const std::vector<tasks::side_call*>& waited() {
    waited_.clear();
    if (!from_.has_ended() && all_.size() < most_) waited_.push_back(from_.side());
    for (const auto& one : all_) {
      if (!one.is_done()) waited_.push_back(&one.side());
    }
    return waited_;
  }
  // Takes the next one, if the stream has given it. False if it has not.
  bool take_next() {
    if (all_.size() == most_ || !from_.is_ready()) return false;
    auto one = from_.take();
    if (one) all_.emplace_back(tasks::make_branch(std::move(*one)));
    return one.has_value();
  }

 private:
  side_stream<Awaitable> from_;
  const std::size_t most_;
  std::deque<side_task<given_by<Awaitable>>> all_;
  std::vector<tasks::side_call*> waited_;
};

template <class Awaitable>
async_generator<value_by<Awaitable>> buffered(async_generator<Awaitable> of, std::size_t most,
                                              bool ordered) {
  running_tasks<Awaitable> all(std::move(of), most);
  while (!all.has_ended()) {
    const auto done = all.find_done(ordered);
    // With a result at hand it only begins what may run.
    co_await select(all.waited(), std::chrono::nanoseconds(done ? 0 : INT64_MAX));
    if (all.take_next() || !done) continue;
    auto value = all.take(*done);
    co_yield std::move(value);
  }
}

template <class T>
async_generator<T> merge(std::vector<async_generator<T>> of) {
  std::vector<side_stream<T>> all;
  all.reserve(of.size());
  for (auto& one : of) {
    if (side_stream<T> part(std::move(one)); !part.has_ended()) all.push_back(std::move(part));
  }
  std::vector<tasks::side_call*> sides;
  for (std::size_t next = 0; !all.empty();) {
    if (sides.size() != all.size()) {
      sides.clear();
      for (const auto& one : all) sides.push_back(one.side());
    }
    co_await select(sides);
    // Each stream in its turn, so that none that is always ready keeps the others waiting.
    for (std::size_t n = all.size(); n > 0; --n) {
      if (next >= all.size()) next = 0;
      if (!all[next].is_ready()) {
        ++next;
        continue;
      }
      if (auto one = all[next].take()) {
        ++next;
        co_yield std::move(*one);
      } else {
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(next));
      }
      break;
    }
  }
}

template <class... T>
async_generator<std::tuple<T...>> zip(async_generator<T>... of) {
  std::tuple<side_stream<T>...> all(side_stream<T>(std::move(of))...);
  for (;;) {
    bool ended = std::apply([](auto&... one) { return (one.has_ended() || ...); }, all);
    if (ended) break;
    const auto sides = std::apply([](auto&... one) { return std::array{one.side()...}; }, all);
    co_await select(sides, std::chrono::nanoseconds(0));  // all begin at once
    for (tasks::side_call* const& one : sides) {
      const std::span<tasks::side_call* const> alone(&one, 1);
      co_await select(alone);
    }
    auto values = std::apply([](auto&... one) { return std::make_tuple(one.take()...); }, all);
    ended = std::apply([](auto&... one) { return (!one.has_value() || ...); }, values);
    if (ended) break;
    co_yield std::apply([](auto&... one) { return std::tuple<T...>(std::move(*one)...); }, values);
  }
}

}  // namespace detail

// Runs up to `most` awaitables of the stream at once (tasks, futures, what make_task gives), and
// gives their results in the order of the stream; of a task<> it gives std::monostate. So at most
// `most` results are there that were not taken. Cost: a task and about 300 bytes for each.
//
// Example:
//     troupe::task<int> half(int n) {
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));
//       co_return n / 2;
//     }
//     troupe::task<> show() {
//       namespace streams = troupe::streams;
//       auto all = std::views::iota(0, 10) | streams::map(half) | streams::buffered(4);
//       while (auto one = co_await all.next()) std::cout << *one << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show());
//       rt.run();
//     }
inline auto buffered(std::size_t most) {
  check_count("buffered", most);
  return adaptor([most]<class T>(async_generator<T> of) {
    return detail::buffered(std::move(of), most, true);
  });
}
// The same, in the order in which they are done.
inline auto buffered_unordered(std::size_t most) {
  check_count("buffered_unordered", most);
  return adaptor([most]<class T>(async_generator<T> of) {
    return detail::buffered(std::move(of), most, false);
  });
}

// Gives the values of several streams of the same type as they come; ends when all have ended. Each
// may be one value ahead.
template <class First, class... Sources>
requires(source<First> && (source<Sources> && ...)) auto merge(First&& first, Sources&&... others) {
  std::vector<async_generator<element<First>>> all;
  all.reserve(1 + sizeof...(Sources));
  all.push_back(from(std::forward<First>(first)));
  (all.push_back(from(std::forward<Sources>(others))), ...);
  return detail::merge(std::move(all));
}
template <class T>
auto merge(std::vector<async_generator<T>> all) {
  return detail::merge(std::move(all));
}

// Gives tuples of the next values of all streams, which wait at once; ends with the first that
// ends, and then drops the values that the others have given for that tuple.
template <source... Sources>
auto zip(Sources&&... all) {
  return detail::zip(from(std::forward<Sources>(all))...);
}

}  // namespace troupe::streams
