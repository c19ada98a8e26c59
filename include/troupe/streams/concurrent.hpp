// Adaptors of streams that run several things at once: buffered, buffered_unordered, merge, zip.
//
// All of them: Thread: everything runs in the turns of the actor that takes the values: waits
// overlap, computations take turns. An operation that has begun continues between two calls of
// next(), but no new operation begins then. Errors: next() throws the first exception; the stream
// ends, and the other operations are cancelled. Lifetime: dropping the stream cancels everything
// that runs.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/select.hpp"
#include "troupe/streams/sequence.hpp"
#include "troupe/task/when.hpp"

namespace troupe::streams {

// Throws usage_error, with the name of the function, if the count is 0.
void check_count(const char* function, std::size_t count);

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

// The awaitables of the stream that run now. Each has a place of its own until its result is taken.
template <class Awaitable>
class running_tasks {
 public:
  // Throws std::bad_alloc.
  running_tasks(async_generator<Awaitable>&& awaitables, std::size_t most, bool ordered)
      : from_(std::move(awaitables)), most_(most), ordered_(ordered) {}
  bool has_ended() const noexcept { return from_.has_ended() && running_ == 0; }
  // Whether a result may be given: the first in order, or any.
  bool has_result() const noexcept {
    return ordered_ ? !order_.empty() && all_[order_.front()].is_done() : crowd_->any_ready();
  }
  value_by<Awaitable> take() {
    const std::size_t place = ordered_ ? order_.front() : crowd_->first_ready();
    ordered_ ? order_.pop_front() : crowd_->pop_ready();
    side_task<given_by<Awaitable>> finished = std::move(all_[place]);
    free_.push_back(place);
    --running_;
    return finished.take();
  }
  // Runs all tasks that can run, and waits until one is ready, unless a result is at hand.
  select_in_crowd wait() {
    tasks::side_call* const stream =
        from_.has_ended() || running_ == most_ ? nullptr : from_.side();
    tasks::side_call* const begins =
        taken_ == tasks::side_call::no_place ? nullptr : &all_[taken_].side();
    taken_ = tasks::side_call::no_place;
    return select_in_crowd(*crowd_, stream, begins, !has_result());
  }
  // Takes the next one, if the stream has given it. False if it has not.
  bool take_next() {
    if (running_ == most_ || !from_.is_ready()) return false;
    auto awaitable = from_.take();
    if (!awaitable) return false;
    if (free_.empty()) add_place();
    const std::size_t place = free_.back();
    all_[place] = side_task<given_by<Awaitable>>(tasks::make_branch(std::move(*awaitable)));
    if (ordered_) {
      order_.push_back(place);
    } else {
      all_[place].side().place = place;
    }
    free_.pop_back();
    ++running_;
    taken_ = place;
    return true;
  }

 private:
  void add_place() {
    free_.reserve(all_.capacity() + 1);
    crowd_->reserve(all_.size() + 1);
    all_.emplace_back();
    free_.push_back(all_.size() - 1);
  }

  side_stream<Awaitable> from_;
  const std::size_t most_;
  const bool ordered_;
  std::vector<side_task<given_by<Awaitable>>> all_;  // by place
  std::vector<std::size_t> free_;                    // places; it has memory for all of them
  std::deque<std::size_t> order_;                    // of the stream: the places that are in use
  std::size_t running_ = 0;
  std::size_t taken_ = tasks::side_call::no_place;  // it has not begun
  // The last member, which is destroyed first: it is abandoned before its side calls are dropped.
  tasks::side_crowd::owner crowd_ = tasks::side_crowd::make();
};

template <class Awaitable>
async_generator<value_by<Awaitable>> buffered(async_generator<Awaitable> stream, std::size_t most,
                                              bool ordered) {
  running_tasks<Awaitable> all(std::move(stream), most, ordered);
  while (!all.has_ended()) {
    co_await all.wait();
    if (all.take_next() || !all.has_result()) continue;
    auto value = all.take();
    co_yield std::move(value);
  }
}

template <class T>
async_generator<T> merge(std::vector<async_generator<T>> inputs) {
  std::vector<side_stream<T>> all;
  all.reserve(inputs.size());
  for (auto& input : inputs) {
    if (side_stream<T> part(std::move(input)); !part.has_ended()) all.push_back(std::move(part));
  }
  std::vector<tasks::side_call*> sides;
  for (std::size_t next = 0; !all.empty();) {
    if (sides.size() != all.size()) {
      sides.clear();
      for (const auto& stream : all) sides.push_back(stream.side());
    }
    co_await select(sides);
    // The streams take turns, so that a stream that is always ready does not keep the others
    // waiting.
    for (std::size_t n = all.size(); n > 0; --n) {
      if (next >= all.size()) next = 0;
      if (!all[next].is_ready()) {
        ++next;
        continue;
      }
      if (auto value = all[next].take()) {
        ++next;
        co_yield std::move(*value);
      } else {
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(next));
      }
      break;
    }
  }
}

template <class... T>
async_generator<std::tuple<T...>> zip(async_generator<T>... inputs) {
  std::tuple<side_stream<T>...> all(side_stream<T>(std::move(inputs))...);
  for (;;) {
    bool ended = std::apply([](auto&... stream) { return (stream.has_ended() || ...); }, all);
    if (ended) break;
    const auto sides =
        std::apply([](auto&... stream) { return std::array{stream.side()...}; }, all);
    co_await select(sides, std::chrono::nanoseconds(0));  // all begin at once
    for (tasks::side_call* const& side : sides) {
      const std::span<tasks::side_call* const> alone(&side, 1);
      co_await select(alone);
    }
    auto values =
        std::apply([](auto&... stream) { return std::make_tuple(stream.take()...); }, all);
    ended = std::apply([](auto&... value) { return (!value.has_value() || ...); }, values);
    if (ended) break;
    co_yield std::apply([](auto&... value) { return std::tuple<T...>(std::move(*value)...); },
                        values);
  }
}

}  // namespace detail

// Runs up to `most` awaitables of the stream at once (tasks, futures, results of make_task), and
// yields their results in the order of the stream; for a task<> it yields std::monostate. At most
// `most` results wait to be taken. Cost: a task and about 300 bytes for each.
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
  return adaptor([most]<class T>(async_generator<T> stream) {
    return detail::buffered(std::move(stream), most, true);
  });
}
// The same, but yields each result as soon as it is ready.
inline auto buffered_unordered(std::size_t most) {
  check_count("buffered_unordered", most);
  return adaptor([most]<class T>(async_generator<T> stream) {
    return detail::buffered(std::move(stream), most, false);
  });
}

// Yields the values of several streams of the same type as they arrive; ends when all streams have
// ended. Each stream may be one value ahead.
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

// Yields tuples of the next values of all streams, which wait at the same time. Ends when the first
// stream ends, and drops the values that the other streams have yielded for that tuple.
template <source... Sources>
auto zip(Sources&&... all) {
  return detail::zip(from(std::forward<Sources>(all))...);
}

}  // namespace troupe::streams
