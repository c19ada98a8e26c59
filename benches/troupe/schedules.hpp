// Our benchmarks of a search for schedules, beside the same executions under seeds alone.
// ../README.md says what one operation of each is. All programs are right: nothing is found.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- two clerks add to a stock: five turns ----

struct stock {
  int items = 0;
  void add(int more) { items += more; }
};
struct clerk {
  troupe::ref<stock> to;
  void deliver() { to.tell<&stock::add>(1); }
};

inline void deliver_twice(const troupe::runtime_options& options) {
  troupe::runtime rt(options);
  auto target = rt.spawn<stock>();
  for (int i = 0; i < 2; ++i) rt.spawn<clerk>(target).tell<&clerk::deliver>();
  rt.run();
}

// ---- 40 actors in a ring pass 40 tokens five times on ----

struct passer {
  troupe::ref<passer> next;
  void meet(troupe::ref<passer> other) { next = std::move(other); }
  void pass(int left) {
    if (left != 0) next.tell<&passer::pass>(left - 1);
  }
  void part() { next = {}; }
};

inline void pass_round(const troupe::runtime_options& options) {
  troupe::runtime rt(options);
  std::vector<troupe::ref<passer>> all;
  for (int i = 0; i < 40; ++i) all.push_back(rt.spawn<passer>());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].tell<&passer::meet>(all[(i + 1) % all.size()]);
    all[i].tell<&passer::pass>(5);
  }
  rt.run();
  for (const auto& each : all) each.tell<&passer::part>();
  rt.run();
}

// ---- a client and a server exchange ten messages over a simulated connection ----

constexpr std::size_t echo_bytes = 64;
constexpr int echoes = 10;

inline troupe::task<> answer(troupe::tcp_listener listener) {
  auto peer = co_await listener.accept();
  std::array<char, echo_bytes> bytes{};
  for (int i = 0; i < echoes; ++i) {
    co_await peer.read_exact(bytes);
    co_await peer.write_all(std::string_view(bytes.data(), bytes.size()));
  }
}

inline troupe::task<> ask(troupe::endpoint at) {
  auto server = co_await troupe::tcp_stream::connect(at);
  std::array<char, echo_bytes> bytes{};
  for (int i = 0; i < echoes; ++i) {
    co_await server.write_all(std::string_view(bytes.data(), bytes.size()));
    co_await server.read_exact(bytes);
  }
}

inline void echo(const troupe::runtime_options& options) {
  troupe::runtime rt(options);
  rt.spawn([]() -> troupe::task<> {
    auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
    const troupe::endpoint at = listener.local();
    auto answers = troupe::spawn(answer(std::move(listener)));
    co_await ask(at);
    co_await std::move(answers);
  });
  rt.run();
}

// ---- many executions ----

using program = void (*)(const troupe::runtime_options&);

// Schedules of a search.
template <program Program>
result searched(unsigned, std::uint64_t size) {
  const stopwatch watch;
  troupe::explore_options options;
  options.schedules = static_cast<unsigned>(size);
  options.time = std::chrono::hours(1);
  const troupe::explore_report report = troupe::explore([](auto&) { Program({}); }, options);
  return {.value = 1e9 / watch.ns_per(size), .check = report ? report.schedules : 0};
}

// One seed after the other, without a search.
template <program Program>
result seeded(unsigned, std::uint64_t size) {
  const stopwatch watch;
  std::uint64_t done = 0;
  for (; done < size; ++done) {
    troupe::runtime_options options;
    options.policy = troupe::policy::simulated;
    options.seed = done + 1;
    Program(options);
  }
  return {.value = 1e9 / watch.ns_per(size), .check = done};
}

}  // namespace troupe_bench
