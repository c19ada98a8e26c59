// select: one of several sends and receives happens, and the others have not.
#include <array>
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

class selects : public conformance {};

TEST_P(selects, the_case_that_is_ready_happens) {
  runtime rt(options());
  const auto numbers = channel<int>::bounded(2);
  const auto names = channel<std::string>::bounded(2);
  std::string seen;
  const auto all = [&]() -> task<> {
    names.try_send("one");
    const auto first = co_await select(numbers.receive(), names.receive());
    if (first.index() == 1) seen += *std::get<1>(first);
    numbers.try_send(2);
    const auto second = co_await select(numbers.receive(), names.receive());
    if (second.index() == 0) seen += std::to_string(*std::get<0>(second));
    const auto third = co_await select(numbers.receive(), names.send("three"));
    if (third.index() == 1) seen += *names.try_receive();
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(seen, "one2three");
}

TEST_P(selects, the_case_whose_partner_comes_first_happens) {
  runtime rt(options());
  const auto one = channel<int>::rendezvous(), two = channel<int>::rendezvous();
  const auto three = channel<int>::bounded(1);
  three.try_send(0);
  std::vector<std::size_t> order;
  const auto waits = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      const auto got = co_await select(one.receive(), two.receive(), three.send(7));
      order.push_back(got.index());
    }
  };
  const auto partners = [&]() -> task<> {
    co_await two.send(1);
    co_await yield();
    EXPECT_EQ(three.try_receive(), 0);
    co_await yield();
    co_await one.send(1);
  };
  const auto all = [&]() -> task<> { co_await when_all(waits(), partners()); };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(three.try_receive(), 7);
  EXPECT_FALSE(one.try_send(1) || two.try_send(1));  // nobody is left in the lists
}

TEST_P(selects, a_value_that_was_not_sent_is_still_there) {
  runtime rt(options());
  const auto full = channel<std::unique_ptr<int>>::rendezvous();
  const auto other = channel<int>::bounded(1);
  std::string ends;
  const auto all = [&]() -> task<> {
    auto value = std::make_unique<int>(1);
    other.try_send(5);
    const auto got = co_await select(full.send(std::move(value)), other.receive());
    EXPECT_EQ(got.index(), 1U);
    EXPECT_TRUE(value != nullptr);
    try {
      co_await select(full.send(std::move(value)), other.receive()).timeout(1ms);
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    EXPECT_TRUE(value != nullptr);
    std::stop_source stop;
    const auto stops = [&]() -> task<> {
      co_await yield();
      stop.request_stop();
    };
    const auto selecting = [&]() -> task<> {
      try {
        co_await select(full.send(std::move(value)), other.receive()).stop(stop.get_token());
      } catch (const cancelled&) {
        ends += "cancelled ";
      }
    };
    co_await when_all(selecting(), stops());
    EXPECT_TRUE(value != nullptr);
    full.close();
    try {
      co_await select(full.send(std::move(value)), other.receive());
    } catch (const channel_closed&) {
      ends += "closed";
    }
    EXPECT_TRUE(value != nullptr);
    EXPECT_TRUE(other.try_send(1));
    EXPECT_EQ(other.try_receive(), 1);
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out cancelled closed");
}

TEST_P(selects, a_channel_that_ends_while_a_select_waits_gives_nothing) {
  runtime rt(options());
  const auto one = channel<int>::rendezvous(), two = channel<int>::rendezvous();
  bool refused = false, empty = false;
  const auto all = [&]() -> task<> {
    const auto receives = [&]() -> task<> {
      const auto got = co_await select(one.receive(), two.receive());
      empty = got.index() == 1 && !std::get<1>(got).has_value();
    };
    const auto sends = [&]() -> task<> {
      try {
        co_await select(one.receive(), two.send(1));
      } catch (const channel_closed&) {
        refused = true;
      }
    };
    const auto closes = [&]() -> task<> {
      co_await yield();
      two.close();
    };
    const auto late = [&]() -> task<> {
      co_await yield();
      co_await yield();
      co_await sends();
    };
    co_await when_all(receives(), closes(), late());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_TRUE(empty && refused);
}

TEST_P(selects, nothing_waits_in_a_try) {
  const auto one = channel<int>::bounded(1);
  const auto two = channel<int>::rendezvous();
  EXPECT_FALSE(try_select(one.receive(), two.receive(), two.send(1)).has_value());
  one.try_send(4);
  const auto got = try_select(one.receive(), two.receive());
  EXPECT_EQ(std::get<0>(got.value()), 4);
  const auto sent = try_select(two.receive(), one.send(5));
  EXPECT_EQ(sent.value().index(), 1U);
  std::vector<channel<int>::receiving> each;
  each.push_back(two.receive());
  each.push_back(one.receive());
  const auto any = try_select(std::move(each));
  EXPECT_EQ(any.value(), (std::pair<std::size_t, std::optional<int>>{1, 5}));
}

TEST_P(selects, cases_that_are_ready_take_turns) {
  runtime rt(options());
  std::vector<channel<int>> some;
  for (int i = 0; i < 8; ++i) some.push_back(channel<int>::bounded(1000));
  for (const int full : {1, 2, 6}) {
    for (int i = 0; i < 1000; ++i) some[static_cast<std::size_t>(full)].try_send(i);
  }
  std::array<int, 8> taken{};
  const auto all = [&]() -> task<> {
    for (int i = 0; i < 900; ++i) {
      std::vector<channel<int>::receiving> each;
      for (const auto& one : some) each.push_back(one.receive());
      const auto got = co_await select(std::move(each));
      ++taken[got.first];
    }
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  for (const std::size_t full : {1U, 2U, 6U}) {
    EXPECT_GT(taken[full], 200);
    EXPECT_LT(taken[full], 400);
  }
}

TEST_P(selects, selects_meet_selects) {
  runtime rt(options());
  const auto left = channel<int>::rendezvous(), right = channel<int>::rendezvous();
  std::atomic<int> sent{0}, received{0}, sum{0};
  const int each = 200;
  // Each party sends one way and receives the other, so that each exchange is between two selects.
  const auto party = [&](channel<int> to, channel<int> from) -> task<> {
    for (int i = 0; i < each; ++i) {
      const auto got = co_await select(to.send(1), from.receive());
      if (got.index() == 0) {
        ++sent;
      } else {
        ++received;
        sum += *std::get<1>(got);
      }
    }
  };
  for (int i = 0; i < 2; ++i) {
    rt.spawn(party(left, right));
    rt.spawn(party(right, left));
  }
  rt.run();
  EXPECT_EQ(sent.load(), 2 * each);
  EXPECT_EQ(received.load(), 2 * each);
  EXPECT_EQ(sum.load(), 2 * each);
}

TEST_P(selects, one_channel_may_be_in_several_cases) {
  runtime rt(options());
  const auto one = channel<int>::rendezvous();
  int got = 0;
  const auto all = [&]() -> task<> {
    const auto selecting = [&]() -> task<> {
      for (int i = 0; i < 2; ++i) {
        const auto way = co_await select(one.receive(), one.send(7), one.receive());
        if (way.index() == 0) got += *std::get<0>(way);
      }
    };
    const auto partner = [&]() -> task<> {
      co_await yield();
      co_await one.send(1);
      co_await yield();
      const auto seven = co_await one.receive();
      got += *seven;
    };
    co_await when_all(selecting(), partner());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(got, 8);
}

TEST(selects_of_threads, plain_threads_select) {
  const auto left = channel<int>::rendezvous(), right = channel<int>::bounded(2);
  const auto stop = channel<int>::rendezvous();
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const auto got = select(left.receive(), right.receive(), stop.receive()).get();
          if (got.index() == 0) sum += *std::get<0>(got);
          if (got.index() == 1) sum += *std::get<1>(got);
          if (got.index() == 2) break;
        }
      });
    }
    {
      std::vector<std::jthread> senders;
      for (int i = 0; i < 2; ++i) {
        senders.emplace_back([&] {
          for (int n = 0; n < 300; ++n) select(left.send(1), right.send(1)).get();
        });
      }
    }
    while (right.size() != 0) std::this_thread::yield();
    stop.close();
  }
  EXPECT_EQ(sum.load(), 600);
  EXPECT_THROW(select(left.receive(), right.receive()).timeout(1ms).get(), timed_out);
  std::vector<channel<int>::receiving> none;
  EXPECT_THROW(static_cast<void>(select(std::move(none))), usage_error);
}

}  // namespace

TROUPE_TEST_EACH(selects, all_settings);

}  // namespace troupe::test
