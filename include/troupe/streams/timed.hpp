// Adaptors of streams that count or wait: chunks, throttle, debounce.
//
// All of them: Thread: the turns of the actor that takes the values. Order: as in the source. Time:
// the runtime's, virtual under the simulated policy. If one of their timers ends a wait, the source
// stays unchanged: no value is lost, whatever the source is. Errors: next() throws an exception of
// the source, after the values that the source yielded before. Lifetime: they own the source.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/streams/concurrent.hpp"
#include "troupe/streams/select.hpp"
#include "troupe/streams/sequence.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::streams {

namespace detail {

inline constexpr auto no_limit = std::chrono::nanoseconds::max();

template <class T>
async_generator<std::vector<T>> chunks(async_generator<T> stream, std::size_t most,
                                       time_span within) {
  side_stream<T> all(std::move(stream));
  tasks::untaken_error failure;
  while (!all.has_ended() && !failure.there()) {
    std::vector<T> chunk;
    std::chrono::nanoseconds due = no_limit;
    while (chunk.size() < most) {
      tasks::side_call* const sides[] = {all.side()};
      std::chrono::nanoseconds left = no_limit;
      if (due != no_limit) {
        const auto now = co_await time_now();
        left = due - now;
      }
      const bool ready = co_await select(sides, left);
      if (!ready) break;
      failure.set(tasks::failure_of([&] {
        if (auto value = all.take()) chunk.push_back(std::move(*value));
      }));
      if (failure.there() || all.has_ended()) break;
      if (chunk.size() == 1 && within != no_limit) {
        const auto now = co_await time_now();
        due = within.after(now);
      }
    }
    if (!chunk.empty()) co_yield std::move(chunk);
  }
  if (failure.there()) std::rethrow_exception(failure.take());
}

template <class T>
async_generator<T> throttle(async_generator<T> stream, time_span span) {
  std::chrono::nanoseconds due{0};
  while (auto value = co_await stream.next()) {
    auto now = co_await time_now();
    if (now < due) {
      co_await sleep_for(due - now);
      now = co_await time_now();
    }
    due = span.after(now);
    co_yield std::move(*value);
  }
}

template <class T>
async_generator<T> debounce(async_generator<T> stream, time_span span) {
  side_stream<T> all(std::move(stream));
  tasks::untaken_error failure;
  std::optional<T> last;
  while (!all.has_ended() && !failure.there()) {
    tasks::side_call* const sides[] = {all.side()};
    const bool ready = co_await select(sides, last ? span : no_limit);
    if (ready) {
      failure.set(tasks::failure_of([&] {
        if (auto value = all.take()) last = std::move(value);
      }));
      if (!failure.there() && !all.has_ended()) continue;
    }
    if (last) {
      T value = std::move(*last);
      last.reset();
      co_yield std::move(value);
    }
  }
  if (failure.there()) std::rethrow_exception(failure.take());
}

}  // namespace detail

// Yields vectors of `most` values; the last one may have fewer.
inline auto chunks(std::size_t most) {
  check_count("chunks", most);
  return adaptor([most]<class T>(async_generator<T> stream) {
    return detail::chunks(std::move(stream), most, detail::no_limit);
  });
}
// The same, but yields the collected values when `within` has passed since the first value of the
// vector arrived.
//
// Example:
//     troupe::task<> show(troupe::channel<int> numbers) {
//       namespace streams = troupe::streams;
//       auto all = numbers | streams::chunks(100, std::chrono::milliseconds(10));
//       while (auto some = co_await all.next()) std::cout << some->size() << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       const auto numbers = troupe::channel<int>::unbounded();
//       for (int i = 0; i < 250; ++i) numbers.try_send(i);
//       numbers.close();
//       rt.spawn(show(numbers));
//       rt.run();
//     }
inline auto chunks(std::size_t most, time_span within) {
  check_count("chunks", most);
  return adaptor([most, within]<class T>(async_generator<T> stream) {
    return detail::chunks(std::move(stream), most, within);
  });
}

// Yields at most one value in each `span`: the other values wait, and with them the source. No
// value is dropped.
inline auto throttle(time_span span) {
  return adaptor([span]<class T>(async_generator<T> stream) {
    return detail::throttle(std::move(stream), span);
  });
}

// Yields a value once no newer value has arrived for `span`, and drops the values before it. The
// last value before the end of the source is also yielded.
inline auto debounce(time_span span) {
  return adaptor([span]<class T>(async_generator<T> stream) {
    return detail::debounce(std::move(stream), span);
  });
}

}  // namespace troupe::streams
