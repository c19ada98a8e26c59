// Channels: values in order, each to one receiver; every way in which a wait can end; closing;
// plain threads and actors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class channels : public conformance {};

std::vector<channel<int>> each_kind() {
  return {channel<int>::rendezvous(), channel<int>::bounded(1), channel<int>::bounded(7),
          channel<int>::unbounded()};
}

task<> send_range(channel<int> to, int from, int count) {
  for (int i = 0; i < count; ++i) co_await to.send(from + i);
}
task<> receive_all(channel<int> from, std::shared_ptr<std::vector<int>> got) {
  while (const auto value = co_await from.receive()) got->push_back(*value);
}

TEST_P(channels, a_receiver_gets_the_values_in_order) {
  for (const channel<int>& kind : each_kind()) {
    runtime rt(options());
    auto got = std::make_shared<std::vector<int>>();
    const auto sends = [](channel<int> to) -> task<> {
      co_await send_range(to, 0, 500);
      to.close();
    };
    rt.spawn(receive_all(kind, got));
    rt.spawn(sends(kind));
    rt.run();
    std::vector<int> all(500);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(*got, all) << kind.capacity();
  }
}

TEST_P(channels, many_senders_and_receivers_share_each_value_once) {
  for (const channel<int>& kind : each_kind()) {
    runtime rt(options());
    std::vector<std::shared_ptr<std::vector<int>>> got;
    std::vector<task<>> senders;
    for (int i = 0; i < 4; ++i) {
      got.push_back(std::make_shared<std::vector<int>>());
      rt.spawn(receive_all(kind, got.back()));
      senders.push_back(send_range(kind, i * 1000, 250));
    }
    const auto sends = [](std::vector<task<>> all, channel<int> to) -> task<> {
      co_await when_all(std::move(all));
      to.close();
    };
    rt.spawn(sends(std::move(senders), kind));
    rt.run();
    std::vector<int> sum, wanted;
    for (const auto& one : got) {
      sum.insert(sum.end(), one->begin(), one->end());
      for (int sender = 0; sender < 4; ++sender) {  // in the order of each sender
        std::vector<int> of_one;
        std::ranges::copy_if(*one, std::back_inserter(of_one),
                             [&](int value) { return value / 1000 == sender; });
        EXPECT_TRUE(std::ranges::is_sorted(of_one));
      }
    }
    for (int i = 0; i < 4; ++i)
      for (int n = 0; n < 250; ++n) wanted.push_back(i * 1000 + n);
    std::ranges::sort(sum);
    EXPECT_EQ(sum, wanted) << kind.capacity();
  }
}

TEST_P(channels, parties_are_served_in_the_order_in_which_they_came) {
  runtime rt(options());
  std::string order;
  const auto all = [&]() -> task<> {
    const auto meet = channel<int>::rendezvous();
    const auto receives = [&](char name) -> task<> {
      const auto value = co_await meet.receive();
      order += name;
      order += static_cast<char>('0' + *value);
    };
    std::vector<task<>> parties;
    for (const char name : {'a', 'b', 'c'}) parties.push_back(receives(name));
    parties.push_back(send_range(meet, 1, 3));
    co_await when_all(std::move(parties));
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(order, "a1b2c3");
}

TEST_P(channels, a_bounded_channel_holds_what_it_can_and_no_more) {
  const auto two = channel<int>::bounded(2);
  EXPECT_EQ(two.capacity(), 2U);
  EXPECT_TRUE(two.try_send(1));
  EXPECT_TRUE(two.try_send(2));
  EXPECT_FALSE(two.try_send(3));
  EXPECT_EQ(two.size(), 2U);
  EXPECT_EQ(two.try_receive(), 1);
  EXPECT_TRUE(two.try_send(3));
  EXPECT_EQ(two.try_receive(), 2);
  EXPECT_EQ(two.try_receive(), 3);
  EXPECT_EQ(two.try_receive(), std::nullopt);
  EXPECT_EQ(two.size(), 0U);
  EXPECT_FALSE(channel<int>::rendezvous().try_send(1));
  EXPECT_THROW(static_cast<void>(channel<int>::bounded(0)), usage_error);
  const auto any = channel<int>::unbounded();
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(any.try_send(i));
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(any.try_receive(), i);
}

TEST_P(channels, a_sender_that_gives_up_keeps_its_value) {
  runtime rt(options());
  std::string ends;
  const auto all = [&]() -> task<> {
    const auto one = channel<std::unique_ptr<int>>::bounded(1);
    co_await one.send(std::make_unique<int>(1));
    auto second = std::make_unique<int>(2);
    try {
      co_await one.send(std::move(second)).timeout(1ms);
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    EXPECT_TRUE(second != nullptr && *second == 2);
    EXPECT_FALSE(one.try_send(std::move(second)));
    EXPECT_TRUE(second != nullptr);
    std::stop_source stop;
    const auto stops = [&]() -> task<> {
      co_await yield();
      stop.request_stop();
    };
    const auto sends = [&]() -> task<> {
      try {
        co_await one.send(std::move(second)).stop(stop.get_token());
      } catch (const cancelled&) {
        ends += "cancelled ";
      }
    };
    co_await when_all(sends(), stops());
    EXPECT_TRUE(second != nullptr);
    const auto first = co_await one.receive();
    EXPECT_EQ(**first, 1);
    co_await one.send(std::move(second));
    EXPECT_TRUE(second == nullptr);
    one.close();
    auto third = std::make_unique<int>(3);
    try {
      co_await one.send(std::move(third));
    } catch (const channel_closed&) {
      ends += "closed";
    }
    EXPECT_TRUE(third != nullptr);
    EXPECT_THROW(static_cast<void>(one.try_send(std::move(third))), channel_closed);
    EXPECT_TRUE(third != nullptr);
    const auto last = co_await one.receive();
    EXPECT_EQ(**last, 2);
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out cancelled closed");
}

TEST_P(channels, a_receiver_that_gives_up_takes_nothing) {
  runtime rt(options());
  std::string ends;
  const auto all = [&]() -> task<> {
    const auto meet = channel<int>::rendezvous();
    try {
      co_await meet.receive().timeout(1ms);
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    std::stop_source stop;
    stop.request_stop();
    try {
      co_await meet.receive().stop(stop.get_token());
    } catch (const cancelled&) {
      ends += "cancelled";
    }
    EXPECT_FALSE(meet.try_send(1));  // no receiver waits any longer
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out cancelled");
}

TEST_P(channels, close_ends_all_waits_and_leaves_what_is_in_the_channel) {
  runtime rt(options());
  std::atomic<int> refused{0}, empty{0}, got{0};
  const auto full = channel<int>::bounded(2), none = channel<int>::rendezvous();
  const auto sends = [&](int value) -> task<> {
    try {
      co_await full.send(value);
    } catch (const channel_closed&) {
      ++refused;
    }
  };
  const auto receives = [&]() -> task<> {
    const auto value = co_await none.receive();
    if (!value) ++empty;
  };
  const auto all = [&]() -> task<> {
    std::vector<task<>> parties;
    for (int i = 0; i < 5; ++i) parties.push_back(sends(i));
    for (int i = 0; i < 3; ++i) parties.push_back(receives());
    const auto closes = [&]() -> task<> {
      co_await yield();
      full.close();
      none.close();
      none.close();
    };
    parties.push_back(closes());
    co_await when_all(std::move(parties));
    while (const auto value = co_await full.receive()) ++got;
    EXPECT_EQ(co_await full.receive(), std::nullopt);
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(refused.load(), 3);
  EXPECT_EQ(empty.load(), 3);
  EXPECT_EQ(got.load(), 2);
  EXPECT_TRUE(full.is_closed());
}

TEST_P(channels, the_last_sender_that_goes_closes_the_channel) {
  runtime rt(options());
  auto got = std::make_shared<std::vector<int>>();
  {
    auto [to, from] = channel<int>::bounded(3).split();
    const auto sends = [](channel<int>::sender by, int first) -> task<> {
      for (int i = 0; i < 50; ++i) co_await by.send(first + i);
    };
    const auto receives = [](channel<int>::receiver by,
                             std::shared_ptr<std::vector<int>> into) -> task<> {
      while (const auto value = co_await by.receive()) into->push_back(*value);
    };
    rt.spawn(sends(to, 0));
    rt.spawn(sends(to, 50));
    rt.spawn(receives(std::move(from), got));
  }
  rt.run();
  EXPECT_EQ(got->size(), 100U);
}

TEST_P(channels, when_the_last_receiver_goes_senders_are_refused_and_values_destroyed) {
  runtime rt(options());
  auto [to, from] = channel<std::shared_ptr<int>>::bounded(2).split();
  auto value = std::make_shared<int>(1);
  bool closed = false;
  const auto sends = [&]() -> task<> {
    co_await to.send(value);
    EXPECT_EQ(value.use_count(), 2);
    auto last = from;
    auto gone = std::move(from);
    { auto drop = std::move(gone); }
    EXPECT_FALSE(to.is_closed());
    { auto drop = std::move(last); }
    EXPECT_TRUE(to.is_closed());
    try {
      co_await to.send(value);
    } catch (const channel_closed&) {
      closed = true;
    }
  };
  auto done = rt.spawn(sends());
  rt.run();
  done.get();
  EXPECT_TRUE(closed);
  EXPECT_EQ(value.use_count(), 1);
}

struct worker_actor {
  channel<int> from;
  std::shared_ptr<std::atomic<int>> sum;
  task<> work() {
    while (const auto value = co_await from.receive()) *sum += *value;
  }
};

TEST_P(channels, actors_receive_and_threads_send) {
  runtime rt(options());
  const auto numbers = channel<int>::bounded(8);
  auto sum = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 3; ++i) rt.spawn<worker_actor>(numbers, sum).tell<&worker_actor::work>();
  std::jthread outside([&, open = rt.hold()] {
    for (int i = 1; i <= 200; ++i) numbers.send(i).get();
    numbers.close();
  });
  rt.run();
  EXPECT_EQ(sum->load(), 200 * 201 / 2);
}

TEST(channels_of_threads, plain_threads_block) {
  for (const channel<int>& kind : each_kind()) {
    std::atomic<int> sum{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
          while (const auto value = kind.receive().get()) sum += *value;
        });
      }
      {
        std::vector<std::jthread> senders;
        for (int i = 0; i < 3; ++i) {
          senders.emplace_back([&] {
            for (int n = 1; n <= 100; ++n) kind.send(n).get();
          });
        }
      }
      kind.close();
    }
    EXPECT_EQ(sum.load(), 3 * 5050);
    EXPECT_THROW(kind.send(1).get(), channel_closed);
  }
  const auto none = channel<int>::rendezvous();
  EXPECT_THROW(static_cast<void>(none.receive().timeout(1ms).get()), timed_out);
  EXPECT_THROW(none.send(1).timeout(1ms).get(), timed_out);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_THROW(static_cast<void>(none.receive().stop(stop.get_token()).get()), cancelled);
}

TEST_P(channels, a_task_that_is_cancelled_leaves_its_wait) {
  runtime rt(options());
  const auto none = channel<int>::rendezvous();
  bool over = false;
  const auto waits = [&]() -> task<> { co_await none.receive(); };
  const auto all = [&]() -> task<> {
    try {
      co_await waits().timeout(1ms);
    } catch (const timed_out&) {
      over = true;
    }
    EXPECT_FALSE(none.try_send(1));
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_TRUE(over);
}

TEST_P(channels, a_stall_says_who_waits_for_which) {
  runtime rt(options());
  const auto none = channel<int>::rendezvous();
  const auto waits = [](channel<int> from) -> task<> { co_await from.receive(); };
  rt.spawn(waits(none));
  std::string text;
  try {
    rt.run();
  } catch (const stalled& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("channels.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find("a value from a channel"), std::string::npos) << text;
  none.close();
  rt.run();
}

TEST_P(channels, values_are_destroyed_once) {
  EXPECT_EQ(live.load(), 0);
  {
    runtime rt(options());
    const auto some = channel<counted>::bounded(3);
    const auto sends = [](channel<counted> to) -> task<> {
      for (int i = 0; i < 20; ++i) co_await to.send(counted());
      to.close();
    };
    const auto receives = [](channel<counted> from) -> task<> {
      for (int i = 0; i < 18; ++i) co_await from.receive();
      while (const auto value = co_await from.receive()) {
      }
    };
    rt.spawn(sends(some));
    rt.spawn(receives(some));
    rt.run();
    const auto left = channel<counted>::unbounded();
    for (int i = 0; i < 20; ++i) left.try_send(counted());
    EXPECT_TRUE(left.try_receive().has_value());
  }
  EXPECT_EQ(live.load(), 0);
}

}  // namespace

TROUPE_TEST_EACH(channels, all_settings);

}  // namespace troupe::test
