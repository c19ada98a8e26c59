// Our benchmarks of asks, and of tasks that wait or hand over: ask, ask_chain, spawn, await_ready,
// switch. ../README.md says what one operation of each is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- ask: an actor asks another one, and waits for the answer before it asks again ----

struct answerer {
  std::uint64_t next(std::uint64_t number) { return number + 1; }
};

struct asker {
  asker(troupe::ref<answerer> partner, std::uint64_t& seen)
      : other(std::move(partner)), last(seen) {}
  troupe::task<> ask_often(std::uint64_t times) {
    std::uint64_t number = 0;
    while (number < times) number = co_await other.ask<&answerer::next>(number);
    last = number;
  }
  troupe::ref<answerer> other;
  std::uint64_t& last;
};

inline result ask(unsigned workers, std::uint64_t times) {
  troupe::runtime rt({.workers = workers});
  std::uint64_t last = 0;
  auto one = rt.spawn<asker>(rt.spawn<answerer>(), last);
  const stopwatch watch;
  one.tell<&asker::ask_often>(times);
  rt.run();
  return {.value = watch.ns_per(times), .check = last};
}

// ---- ask_chain: each actor's handler asks the next one, and answers when that has ----

struct chain_link {
  troupe::task<std::uint64_t> go(std::uint64_t left) {
    if (left == 0) co_return 0;
    const std::uint64_t behind =
        co_await troupe::spawn<chain_link>().ask<&chain_link::go>(left - 1);
    co_return behind + 1;
  }
};

inline result ask_chain(unsigned workers, std::uint64_t links) {
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto all = rt.spawn<chain_link>().ask<&chain_link::go>(links);
  rt.run();
  return {.value = watch.ns_per(links), .check = all.get()};
}

// ---- spawn: tasks that do nothing, a thousand at a time ----

inline troupe::task<std::uint64_t> one_more() { co_return 1; }

inline troupe::task<std::uint64_t> spawn_and_join(troupe::runtime& rt, std::uint64_t size) {
  std::vector<troupe::future<std::uint64_t>> running(1'000);
  std::uint64_t done = 0;
  while (done < size) {
    const std::size_t now = std::min<std::uint64_t>(size - done, running.size());
    for (std::size_t i = 0; i < now; ++i) running[i] = rt.spawn(one_more());
    for (std::size_t i = 0; i < now; ++i) done += co_await running[i];
  }
  co_return done;
}

inline result spawn(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto done = rt.spawn(spawn_and_join(rt, size));
  rt.run();
  return {.value = watch.ns_per(size), .check = done.get()};
}

// ---- await_ready: a task that returns at once ----

inline troupe::task<std::uint64_t> await_often(std::uint64_t size) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < size; ++i) sum += co_await one_more();
  co_return sum;
}

inline result await_ready(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto sum = rt.spawn(await_often(size));
  rt.run();
  return {.value = watch.ns_per(size), .check = sum.get()};
}

// ---- switch: two tasks, each of which waits for a future that the other one resolves ----

// Rejected: yield(), which lets the scheduler choose who is next, and waits for nothing.
struct table {
  troupe::promise<> turn[2];     // turn[i] is resolved when it is the turn of task i
  std::uint64_t hand_overs = 0;  // counted by the task that has the turn
};

inline troupe::task<> take_turns(table& shared, int me, troupe::future<> turn, std::uint64_t size) {
  for (;;) {
    co_await turn;
    const bool last = shared.hand_overs + 1 >= size;
    if (shared.hand_overs < size) ++shared.hand_overs;
    troupe::promise<> next;
    turn = next.get_future();
    shared.turn[me] = std::move(next);
    shared.turn[1 - me].set_value();
    if (last) break;
  }
}

inline result hand_over(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  table shared;
  rt.spawn(take_turns(shared, 0, shared.turn[0].get_future(), size));
  rt.spawn(take_turns(shared, 1, shared.turn[1].get_future(), size));
  const stopwatch watch;
  shared.turn[0].set_value();
  rt.run();
  return {.value = watch.ns_per(size), .check = shared.hand_overs};
}

}  // namespace troupe_bench
