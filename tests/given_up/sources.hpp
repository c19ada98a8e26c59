// What gives the numbers 0, 1, 2, … to the tests of waits that are given up.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "task/running/running.hpp"

namespace troupe::test {

// Gives each number once, in order, from other tasks, as fast as they are taken or slower.
class source {
 public:
  source() = default;
  source(const source&) = delete;
  source& operator=(const source&) = delete;
  virtual ~source() = default;
  // Called once, in a task, before the first next().
  virtual void start(int count) = 0;
  // Empty at the end.
  virtual task<std::optional<int>> next() = 0;
};

// Every now and then, so that the numbers come in bursts of one to four.
inline bool pauses(int i) { return (i * 7 + i / 5) % 4 == 0; }

class channel_source : public source {
 public:
  explicit channel_source(channel<int> of) : of_(std::move(of)) {}
  void start(int count) override { spawn(fill(of_, count)); }
  task<std::optional<int>> next() override { co_return co_await of_.receive(); }

 protected:
  static task<> fill(channel<int> to, int count) {
    for (int i = 0; i < count; ++i) {
      co_await to.send(i);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
    to.close();
  }
  const channel<int> of_;
};

// The channel is a case of a select, beside one that never gives anything.
class select_source final : public channel_source {
 public:
  using channel_source::channel_source;
  task<std::optional<int>> next() override {
    auto first = co_await select(of_.receive(), never_.receive());
    co_return std::get<0>(first);
  }

 private:
  const channel<int> never_ = channel<int>::unbounded();
};

class stream_source final : public channel_source {
 public:
  explicit stream_source(channel<int> of) : channel_source(of), all_(streams::from(of)) {}
  task<std::optional<int>> next() override { co_return co_await all_.next(); }

 private:
  async_generator<int> all_;
};

class generator_source final : public source {
 public:
  void start(int count) override { all_ = numbers(count); }
  task<std::optional<int>> next() override { co_return co_await all_.next(); }

 private:
  static async_generator<int> numbers(int count) {
    for (int i = 0; i < count; ++i) {
      const bool waits = pauses(i);
      if (waits) co_await yield();
      co_yield i;
    }
  }
  async_generator<int> all_;
};

class broadcast_source final : public source {
 public:
  void start(int count) override {
    broadcast<int> to(static_cast<std::size_t>(count));
    from_.emplace(to.subscribe());
    spawn(fill(std::move(to), count));
  }
  task<std::optional<int>> next() override {
    const auto got = co_await from_->receive();
    co_return got ? std::optional(got->value) : std::nullopt;
  }

 private:
  static task<> fill(broadcast<int> to, int count) {
    for (int i = 0; i < count; ++i) {
      to.send(i);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
    to.close();
  }
  std::optional<broadcast<int>::receiver> from_;
};

// A number is a permit that is never given back.
class semaphore_source final : public source {
 public:
  void start(int count) override {
    count_ = count;
    spawn(fill(free_, count));
  }
  task<std::optional<int>> next() override {
    if (taken_ == count_) co_return std::nullopt;
    auto permit = co_await free_->acquire();
    permit.forget();
    co_return taken_++;
  }

 private:
  static task<> fill(std::shared_ptr<semaphore> free, int count) {
    for (int i = 0; i < count; ++i) {
      free->add(1);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  const std::shared_ptr<semaphore> free_ = std::make_shared<semaphore>(0);
  int count_ = 0, taken_ = 0;
};

// One party takes what another one has announced by a condition.
class condition_source final : public source {
 public:
  void start(int count) override {
    state_->count = count;
    spawn(fill(state_, count));
  }
  task<std::optional<int>> next() override {
    auto held = co_await state_->lock.lock();
    const auto is_there = [this] { return state_->ready > taken_ || taken_ == state_->count; };
    co_await state_->changed.wait(held, is_there);
    if (taken_ == state_->count) co_return std::nullopt;
    co_return taken_++;
  }

 private:
  struct shared {
    mutex lock;
    condition changed;
    int ready = 0, count = 0;
  };
  static task<> fill(std::shared_ptr<shared> to, int count) {
    for (int i = 0; i < count; ++i) {
      {
        const auto held = co_await to->lock.lock();
        ++to->ready;
      }
      to->changed.notify_one();
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
  }
  const std::shared_ptr<shared> state_ = std::make_shared<shared>();
  int taken_ = 0;
};

// A source and its name.
struct named_source {
  const char* name;
  std::unique_ptr<source> (*make)();
};

template <class Source>
std::unique_ptr<source> make_source() {
  return std::make_unique<Source>();
}

template <class Source, channel<int> (*Make)()>
std::unique_ptr<source> make_over() {
  return std::make_unique<Source>(Make());
}
inline channel<int> bounded_channel() { return channel<int>::bounded(2); }

inline std::vector<named_source> sync_sources() {
  return {{"unbounded", &make_over<channel_source, &channel<int>::unbounded>},
          {"bounded", &make_over<channel_source, &bounded_channel>},
          {"rendezvous", &make_over<channel_source, &channel<int>::rendezvous>},
          {"select", &make_over<select_source, &bounded_channel>},
          {"stream", &make_over<stream_source, &bounded_channel>},
          {"generator", &make_source<generator_source>},
          {"broadcast", &make_source<broadcast_source>},
          {"semaphore", &make_source<semaphore_source>},
          {"condition", &make_source<condition_source>}};
}

// What came of a source: whether it was all, in order.
struct received {
  int next = 0;
  bool ended = false, in_order = true;
  void take(const std::optional<int>& value) {
    if (!value) {
      ended = true;
      return;
    }
    in_order = in_order && *value == next;
    ++next;
  }
};

// Two sources side by side, until one has ended; then the rest of the other.
inline task<> drain_pair(source& one, source& other, int count, received (&got)[2]) {
  one.start(count);
  other.start(count);
  while (!got[0].ended && !got[1].ended) {
    auto first = co_await when_any(one.next(), other.next());
    if (first.index() == 0) {
      got[0].take(std::get<0>(first));
    } else {
      got[1].take(std::get<1>(first));
    }
  }
  while (!got[0].ended) got[0].take(co_await one.next());
  while (!got[1].ended) got[1].take(co_await other.next());
}

inline task<> stops_soon(std::stop_source& of) {
  co_await yield();
  of.request_stop();
}
inline task<std::optional<std::optional<int>>> or_nothing(task<std::optional<int>> of) {
  try {
    co_return co_await std::move(of);
  } catch (const cancelled&) {
  }
  co_return std::nullopt;
}

// One source whose waits are ended by limits of all kinds again and again.
inline task<> drain_limited(source& from, int count, received& got) {
  using namespace std::chrono_literals;
  from.start(count);
  for (int i = 0; !got.ended; ++i) {
    std::optional<std::optional<int>> value;
    try {
      if (i % 4 == 0) {
        value = co_await from.next().timeout(std::chrono::microseconds(i % 3 * 10));
      } else if (i % 4 == 1) {
        value = co_await with_deadline(std::chrono::microseconds(i % 5 * 10), from.next());
      } else if (i % 4 == 2) {
        std::stop_source stop;
        auto limited = with_stop(stop.get_token(), from.next());
        auto both = co_await when_all(or_nothing(std::move(limited)), stops_soon(stop));
        value = std::get<0>(both);
      } else {
        value = co_await from.next();
      }
    } catch (const timed_out&) {
    } catch (const cancelled&) {
    }
    if (value) got.take(*value);
  }
}

// Runs on another worker, and cannot be cancelled meanwhile. In a simulation the order of the turns
// alone decides how late it ends.
inline task<> takes_a_while() {
  constexpr std::chrono::microseconds span(100);
  if (tasks::simulation_here() == nullptr)
    std::this_thread::sleep_for(span);  // sleeps: a child without a wait
  co_return;
}
// If it has lost, it still ends only when its child has.
inline task<> ends_late() {
  co_await scope([](task_scope& s) { s.spawn_parallel(takes_a_while()); });
  co_await sleep_for(std::chrono::hours(1));
}

// A task of the user's: its when_any is decided by `wait`, and waits for the end of its loser. By
// then the helper itself may have lost.
template <class Value, class Wait>
task<Value> in_helper(Wait wait, bool begins_first) {
  if (begins_first) {
    auto first = co_await when_any(std::move(wait), ends_late());
    if constexpr (!std::is_void_v<Value>) co_return std::get<0>(std::move(first));
  } else {
    auto first = co_await when_any(ends_late(), std::move(wait));
    if constexpr (!std::is_void_v<Value>) co_return std::get<1>(std::move(first));
  }
}
// The wait itself, in a helper, in a helper of a helper, or one deeper; the losers begin first or
// last.
constexpr int helper_ways = 7;
template <class Value, class Wait>
task<Value> in_helpers(Wait wait, int way) {
  const bool begins_first = way % 2 == 0;
  if (way == 0) co_return co_await std::move(wait);
  if (way <= 2) co_return co_await in_helper<Value>(std::move(wait), begins_first);
  task<Value> inner = in_helper<Value>(std::move(wait), !begins_first);
  if (way > 4) {
    task<Value> between = in_helper<Value>(std::move(inner), begins_first);
    inner = std::move(between);
  }
  co_return co_await in_helper<Value>(std::move(inner), begins_first);
}

// Two sources, each through helpers that lose to each other and to a sleep now and then.
inline task<> drain_in_helpers(source& one, source& other, int count, received (&got)[2]) {
  one.start(count);
  other.start(count);
  for (int i = 0; !got[0].ended || !got[1].ended; ++i) {
    const auto sleeps = sleep_for(std::chrono::microseconds(i % 7 * 40));
    const bool from_one = !got[0].ended, from_both = from_one && !got[1].ended;
    source& first_source = from_one ? one : other;
    received& first_got = got[from_one ? 0 : 1];
    task<std::optional<int>> first =
        in_helpers<std::optional<int>>(first_source.next(), i % helper_ways);
    if (from_both) {
      task<std::optional<int>> second =
          in_helpers<std::optional<int>>(other.next(), i / helper_ways % helper_ways);
      auto won = co_await when_any(std::move(first), std::move(second), sleeps);
      if (won.index() == 0) got[0].take(std::get<0>(won));
      if (won.index() == 1) got[1].take(std::get<1>(won));
    } else {
      auto won = co_await when_any(std::move(first), sleeps);
      if (won.index() == 0) first_got.take(std::get<0>(won));
    }
  }
}

// How a wait is given up: it loses to another one, a limit ends it, or the helper in which it has
// won loses.
enum class given_up_by : std::uint8_t { competitor, limit, helper };
constexpr given_up_by ways_to_give_up[] = {given_up_by::competitor, given_up_by::limit,
                                           given_up_by::helper};

// One source beside a channel, or under limits; it has been started.
inline task<> check_drained(source& from, int count, given_up_by way) {
  received got[2];
  if (way == given_up_by::limit) {
    co_await drain_limited(from, count, got[0]);
  } else {
    channel_source ready(channel<int>::unbounded());
    if (way == given_up_by::competitor) {
      co_await drain_pair(from, ready, count, got);
    } else {
      co_await drain_in_helpers(from, ready, count, got);
    }
    EXPECT_EQ(got[1].next, count);
  }
  EXPECT_EQ(got[0].next, count);
  EXPECT_TRUE(got[0].in_order);
}

inline int all_given(const char*, int count) { return count; }

// All of them in helpers, each beside a source that is almost always ready. They run at the same
// time, since they mostly sleep.
inline void check_in_helpers(const runtime_options& chosen, const std::vector<named_source>& all,
                             int count, int (*expected)(const char* name, int count) = &all_given) {
  struct run {
    std::unique_ptr<source> one, other;
    received got[2];
  };
  std::deque<run> runs;
  for (const named_source& each : all)
    runs.push_back({each.make(), sync_sources().front().make(), {}});
  {
    runtime rt(chosen);
    for (run& each : runs) rt.spawn(drain_in_helpers(*each.one, *each.other, count, each.got));
    rt.run();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(runs[i].got[0].next, expected(all[i].name, count)) << all[i].name;
    EXPECT_EQ(runs[i].got[1].next, count) << all[i].name;
    EXPECT_TRUE(runs[i].got[0].in_order && runs[i].got[1].in_order) << all[i].name;
  }
}

// What is awaited gives texts of numbers, and ends behind `count` of them.
template <class Next>
class texts_source final : public source {
 public:
  texts_source(int count, Next next) : count_(count), next_(std::move(next)) {}
  void start(int) override {}
  task<std::optional<int>> next() override {
    if (given_ == count_) co_return std::nullopt;
    task<std::string> waits = next_();
    const std::string text = co_await std::move(waits);
    co_return std::stoi(text) == given_ ? given_++ : -1;
  }

 private:
  const int count_;
  Next next_;
  int given_ = 0;
};

}  // namespace troupe::test
