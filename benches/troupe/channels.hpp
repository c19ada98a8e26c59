// Our benchmarks of channels, broadcasts and select. ../README.md says what one operation of each
// is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

constexpr std::size_t channel_capacity = 100;
using number_channel = troupe::channel<std::uint64_t>;

inline troupe::task<> send_often(number_channel to, std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) co_await to.send(i);
}

inline troupe::task<std::uint64_t> receive_often(number_channel from, std::uint64_t times) {
  std::uint64_t count = 0;
  for (; count < times; ++count) {
    if (!co_await from.receive()) break;
  }
  co_return count;
}

// ---- tasks that send through one channel, and tasks that receive from it ----

inline result pass(number_channel through, std::uint64_t senders, std::uint64_t receivers,
                   unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  std::vector<troupe::future<std::uint64_t>> counts;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < receivers; ++i)
    counts.push_back(rt.spawn(receive_often(through, size / receivers)));
  for (std::uint64_t i = 0; i < senders; ++i) rt.spawn(send_often(through, size / senders));
  rt.run();
  result r{.value = watch.ns_per(size)};
  for (auto& count : counts) r.check += std::move(count).get();
  return r;
}

inline result channel_1_1(unsigned workers, std::uint64_t size) {
  return pass(number_channel::bounded(channel_capacity), 1, 1, workers, size);
}
inline result channel_4_1(unsigned workers, std::uint64_t size) {
  return pass(number_channel::bounded(channel_capacity), 4, 1, workers, size);
}
inline result channel_4_4(unsigned workers, std::uint64_t size) {
  return pass(number_channel::bounded(channel_capacity), 4, 4, workers, size);
}
inline result rendezvous(unsigned workers, std::uint64_t size) {
  return pass(number_channel::rendezvous(), 1, 1, workers, size);
}

// ---- one task sends to 8 receivers, as many as they may miss none of, and waits for them ----

constexpr std::uint64_t listeners = 8;

inline troupe::task<> announce(troupe::broadcast<std::uint64_t> to, std::uint64_t size,
                               std::atomic<std::uint64_t>& up_to_date) {
  for (std::uint64_t sent = 0; sent < size;) {
    for (std::uint64_t i = 0; i < channel_capacity && sent < size; ++i) to.send(sent++);
    // order: acquire  the listeners have received
    const std::uint64_t wanted = listeners * (sent / channel_capacity);
    while (up_to_date.load(std::memory_order_acquire) < wanted) co_await troupe::yield();
  }
  to.close();
}

inline troupe::task<std::uint64_t> listen(troupe::broadcast<std::uint64_t>::receiver news,
                                          std::atomic<std::uint64_t>& up_to_date) {
  std::uint64_t count = 0;
  while (const auto got = co_await news.receive()) {
    // order: release  as said above
    if (++count % channel_capacity == 0) up_to_date.fetch_add(1, std::memory_order_release);
  }
  co_return count;
}

inline result broadcast_1_8(unsigned workers, std::uint64_t size) {
  std::atomic<std::uint64_t> up_to_date{0};
  troupe::broadcast<std::uint64_t> news(channel_capacity);
  troupe::runtime rt({.workers = workers});
  std::vector<troupe::future<std::uint64_t>> counts;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < listeners; ++i)
    counts.push_back(rt.spawn(listen(news.subscribe(), up_to_date)));
  rt.spawn(announce(std::move(news), size, up_to_date));
  rt.run();
  result r{.value = watch.ns_per(size)};
  for (auto& count : counts) r.check += std::move(count).get();
  return r;
}

// ---- 8 tasks send, each through a channel of its own; one task selects among the 8 ----

inline troupe::task<std::uint64_t> select_often(std::array<number_channel, 8> from,
                                                std::uint64_t times) {
  std::uint64_t count = 0;
  for (; count < times; ++count) {
    static_cast<void>(co_await troupe::select(
        from[0].receive(), from[1].receive(), from[2].receive(), from[3].receive(),
        from[4].receive(), from[5].receive(), from[6].receive(), from[7].receive()));
  }
  co_return count;
}

template <std::size_t... Index>
std::array<number_channel, sizeof...(Index)> make_channels(std::index_sequence<Index...>) {
  return {((void)Index, number_channel::bounded(channel_capacity))...};
}

inline result select_8(unsigned workers, std::uint64_t size) {
  auto channels = make_channels(std::make_index_sequence<8>());
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto count = rt.spawn(select_often(channels, size));
  for (const number_channel& to : channels) rt.spawn(send_often(to, size / channels.size()));
  rt.run();
  return {.value = watch.ns_per(size), .check = count.get()};
}

}  // namespace troupe_bench
