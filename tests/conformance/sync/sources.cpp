// broadcast, watch and oneshot: every receiver gets each value, or the newest, or the only one.
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class sources : public conformance {};

TEST_P(sources, every_receiver_of_a_broadcast_gets_each_value) {
  runtime rt(options());
  std::array<std::vector<int>, 5> got;
  {
    broadcast<int> numbers(200);
    const auto listens = [&](broadcast<int>::receiver from, std::size_t index) -> task<> {
      while (const auto one = co_await from.receive()) {
        EXPECT_EQ(one->missed, 0U);
        got[index].push_back(one->value);
      }
    };
    for (std::size_t i = 0; i < got.size(); ++i) rt.spawn(listens(numbers.subscribe(), i));
    const auto sends = [](broadcast<int> to) -> task<> {
      for (int i = 0; i < 100; ++i) {
        to.send(i);
        if (i % 10 == 0) co_await yield();
      }
    };
    rt.spawn(sends(numbers));
    rt.spawn(sends(numbers));
  }
  rt.run();
  for (const auto& one : got) EXPECT_EQ(one.size(), 200U);
}

TEST_P(sources, a_slow_receiver_is_told_how_many_it_missed) {
  broadcast<int> numbers(4);
  auto slow = numbers.subscribe();
  for (int i = 0; i < 10; ++i) numbers.send(i);
  auto late = numbers.subscribe();
  EXPECT_EQ(slow.behind(), 10U);
  const auto first = slow.try_receive(), second = slow.try_receive();
  EXPECT_EQ(first->value, 6);
  EXPECT_EQ(first->missed, 6U);
  EXPECT_EQ(second->value, 7);
  EXPECT_EQ(second->missed, 0U);
  EXPECT_FALSE(late.try_receive().has_value());
  numbers.send(10);
  EXPECT_EQ(late.try_receive()->value, 10);
  numbers.close();
  numbers.close();
  EXPECT_THROW(numbers.send(11), channel_closed);
  EXPECT_EQ(slow.try_receive()->value, 8);
  EXPECT_EQ(slow.try_receive()->value, 9);
  EXPECT_EQ(slow.try_receive()->value, 10);
  EXPECT_FALSE(slow.try_receive().has_value());
  EXPECT_TRUE(slow.is_closed());
  EXPECT_THROW(broadcast<int>(0), usage_error);
}

// Small values are copied several at a time.
TEST_P(sources, a_receiver_misses_what_the_broadcast_has_dropped) {
  broadcast<int> numbers(4);
  auto reader = numbers.subscribe();
  const auto send = [&](int from, int count) {
    for (int i = 0; i < count; ++i) numbers.send(from + i);
  };
  const auto expect = [&](int value, std::uint64_t missed) {
    const auto got = reader.try_receive();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->value, value);
    EXPECT_EQ(got->missed, missed);
  };
  send(0, 4);
  expect(0, 0);
  send(4, 2);  // drops 0 and 1
  expect(2, 1);
  EXPECT_EQ(reader.behind(), 3U);
  send(6, 1);
  expect(3, 0);
  send(7, 4);  // drops all up to 6
  expect(7, 3);
  expect(8, 0);
  numbers.close();
  expect(9, 0);
  expect(10, 0);
  EXPECT_FALSE(reader.try_receive().has_value());
}

TEST_P(sources, waits_for_a_broadcast_end_in_every_way) {
  runtime rt(options());
  std::string ends;
  const auto all = [&]() -> task<> {
    broadcast<std::string> news(2);
    auto from = news.subscribe();
    try {
      co_await from.receive().timeout(1ms);
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    std::stop_source stop;
    stop.request_stop();
    try {
      co_await from.receive().stop(stop.get_token());
    } catch (const cancelled&) {
      ends += "cancelled ";
    }
    news.send("kept");
    const auto kept = co_await from.receive().timeout(0ns);
    ends += kept->value;
    const auto closes = [&]() -> task<> {
      co_await yield();
      news.close();
    };
    const auto waits = [&]() -> task<> {
      const auto none = co_await from.receive();
      if (!none) ends += " closed";
    };
    co_await when_all(waits(), closes());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out cancelled kept closed");
}

struct fails_to_copy {
  fails_to_copy() = default;
  fails_to_copy(const fails_to_copy& other) : fails(other.fails) {
    if (fails != nullptr && fails->exchange(false)) throw std::runtime_error("no copy");
  }
  fails_to_copy(fails_to_copy&& other) noexcept : fails(other.fails) {}
  std::atomic<bool>* fails = nullptr;
};

TEST_P(sources, a_copy_that_throws_takes_nothing) {
  runtime rt(options());
  std::atomic<bool> fails{false};
  int got = 0, failed = 0;
  const auto all = [&]() -> task<> {
    broadcast<fails_to_copy> news(2);
    auto from = news.subscribe();
    fails_to_copy one;
    one.fails = &fails;
    news.send(std::move(one));
    fails = true;
    for (int i = 0; i < 2; ++i) {
      try {
        const auto value = co_await from.receive();
        if (value) ++got;
      } catch (const std::runtime_error&) {
        ++failed;
      }
    }
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(got, 1);
  EXPECT_EQ(failed, 1);
}

TEST_P(sources, values_of_a_broadcast_are_destroyed_once) {
  EXPECT_EQ(live.load(), 0);
  {
    broadcast<counted> some(3);
    auto from = some.subscribe();
    for (int i = 0; i < 5; ++i) some.send(counted());
    EXPECT_EQ(live.load(), 3);
    EXPECT_TRUE(from.try_receive().has_value());
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(sources, readers_of_a_watch_see_the_newest) {
  runtime rt(options());
  std::atomic<int> last{0}, ends{0};
  {
    watch<int> level(0);
    const auto follows = [&](watch<int>::reader from) -> task<> {
      int seen = 0;
      while (const auto now = co_await from.changed()) {
        EXPECT_GT(*now, seen);
        seen = *now;
      }
      if (seen == 100) ++last;
      ++ends;
    };
    for (int i = 0; i < 6; ++i) rt.spawn(follows(level.subscribe()));
    const auto sets = [](watch<int> of) -> task<> {
      for (int i = 1; i <= 100; ++i) {
        i % 2 == 0 ? of.set(i) : of.update([](int& value) { ++value; });
        if (i % 7 == 0) co_await yield();
      }
    };
    rt.spawn(sets(level));
  }
  rt.run();
  EXPECT_EQ(ends.load(), 6);
  EXPECT_EQ(last.load(), 6);
}

TEST_P(sources, a_watch_tells_what_is_new_and_no_more) {
  watch<std::string> name("first");
  auto reader = name.subscribe();
  EXPECT_EQ(reader.get(), "first");
  EXPECT_FALSE(reader.try_changed().has_value());
  name.set("second");
  name.set("third");
  EXPECT_EQ(reader.get(), "third");
  EXPECT_EQ(reader.try_changed(), "third");
  EXPECT_FALSE(reader.try_changed().has_value());
  EXPECT_THROW(name.update([](std::string&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_FALSE(reader.try_changed().has_value());
  name.set("last");
  name.close();
  EXPECT_THROW(name.set("too late"), channel_closed);
  EXPECT_EQ(reader.try_changed(), "last");
  EXPECT_TRUE(reader.is_closed());
  EXPECT_EQ(name.get(), "last");
}

TEST_P(sources, waits_for_a_watch_end_in_every_way) {
  runtime rt(options());
  std::string ends;
  const auto all = [&]() -> task<> {
    watch<int> level(1);
    auto from = level.subscribe();
    try {
      co_await from.changed().timeout(1ms);
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    std::stop_source stop;
    event was_cancelled;
    const auto stops = [&]() -> task<> {
      co_await yield();
      stop.request_stop();
    };
    const auto waits = [&]() -> task<> {
      try {
        co_await from.changed().stop(stop.get_token());
      } catch (const cancelled&) {
        ends += "cancelled ";
      }
      was_cancelled.set();
      const auto none = co_await from.changed();
      if (!none) ends += "closed";
    };
    const auto closes = [&]() -> task<> {
      co_await was_cancelled.wait();
      co_await sleep_for(2ms);
      level.close();
    };
    co_await when_all(waits(), stops(), closes());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out cancelled closed");
}

TEST(sources_of_threads, plain_threads_block) {
  watch<int> level(0);
  broadcast<int> numbers(1000);
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, from = numbers.subscribe()]() mutable {
        while (const auto one = from.receive().get()) sum += one->value;
      });
      threads.emplace_back([&, from = level.subscribe()]() mutable {
        int seen = 0;
        while (const auto now = from.changed().get()) seen = *now;
        EXPECT_EQ(seen, 100);
      });
    }
    for (int i = 1; i <= 100; ++i) {
      level.set(i);
      numbers.send(i);
    }
    level.close();
    numbers.close();
  }
  EXPECT_EQ(sum.load(), 3 * 5050);
  auto late = numbers.subscribe();
  EXPECT_FALSE(late.receive().get().has_value());
}

TEST_P(sources, a_oneshot_brings_one_value_or_is_broken) {
  runtime rt(options());
  int got = 0;
  bool broken = false;
  const auto all = [&]() -> task<> {
    auto [to, from] = oneshot<int>();
    to.set_value(4);
    got = co_await from;
    auto second = oneshot<std::string>();
    { const auto dropped = std::move(second.first); }
    try {
      co_await std::move(second.second).timeout(1s);
    } catch (const broken_promise&) {
      broken = true;
    }
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(got, 4);
  EXPECT_TRUE(broken);
}

}  // namespace

TROUPE_TEST_EACH(sources, all_settings);

}  // namespace troupe::test
