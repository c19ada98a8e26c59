// What cannot be put back: a send, or a party's arrival at a barrier, beside other waits. It has
// happened if and only if its branch has won.
#include <chrono>

#include "given_up/sources.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class given_up_sends : public conformance {
 protected:
  void run(task<> what) const {
    runtime rt(options());
    auto done = rt.spawn(std::move(what));
    rt.run();
    done.get();
  }
};

task<> soon() { co_await yield(); }
task<> send_in_task(channel<int> to, int i) { co_await to.send(i); }

task<> count_into(channel<int> from, std::vector<int>& counts) {
  while (const auto value = co_await from.receive()) ++counts[static_cast<std::size_t>(*value)];
}

// Sends each number until the winner says that it was sent.
template <class Send>
task<> send_all(int count, channel<int> one, channel<int> other, Send send) {
  for (int i = 0; i < count;) {
    const bool sent = co_await send(one, other, i);
    if (sent) ++i;
  }
  one.close();
  other.close();
}

task<bool> by_both(channel<int> one, channel<int> other, int i) {
  auto first = co_await when_any(one.send(i), other.send(i));
  static_cast<void>(first);
  co_return true;
}
task<bool> by_one_of_many(channel<int> one, channel<int> other, int i) {
  std::vector<channel<int>::sending_small> all;
  all.push_back(one.send(i));
  all.push_back(other.send(i));
  auto first = co_await when_any(std::move(all));
  static_cast<void>(first);
  co_return true;
}
task<bool> beside_time(channel<int> one, channel<int>, int i) {
  auto first = co_await when_any(one.send(i), soon());
  co_return first.index() == 0;
}
task<bool> in_a_task(channel<int> one, channel<int>, int i) {
  auto first = co_await when_any(soon(), send_in_task(one, i), soon());
  co_return first.index() == 1;
}
task<bool> in_a_group(channel<int> one, channel<int> other, int i) {
  auto first = co_await when_any(when_any(soon(), one.send(i)), other.receive(), soon());
  co_return first.index() == 0 && std::get<0>(first).index() == 1;
}

TEST_P(given_up_sends, sends_beside_other_waits_happen_once) {
  const int count = fewer(1000, 10);
  task<bool> (*const ways[])(channel<int>, channel<int>, int) = {
      &by_both, &by_one_of_many, &beside_time, &in_a_task, &in_a_group};
  for (const auto way : ways) {
    for (const auto& [one, other] :
         {std::pair(channel<int>::rendezvous(), channel<int>::rendezvous()),
          {channel<int>::bounded(1), channel<int>::bounded(1)}}) {
      std::vector<int> counts(static_cast<std::size_t>(count)), others(counts);
      runtime rt(options());
      rt.spawn(count_into(one, counts));
      if (way == &by_both || way == &by_one_of_many) rt.spawn(count_into(other, others));
      rt.spawn(send_all(count, one, other, way));
      rt.run();
      for (std::size_t i = 0; i < counts.size(); ++i)
        ASSERT_EQ(counts[i] + others[i], 1) << "value " << i;
    }
  }
}

// The ways in which a send can be a branch.
using send_way = task<> (*)(channel<int>, int);
task<> within_a_limit(channel<int> to, int i) { co_await to.send(i).timeout(1h); }
task<> in_a_select(channel<int> to, int i) {
  const auto never = channel<int>::unbounded();
  static_cast<void>(co_await select(never.receive(), to.send(i)));
}
task<> in_a_limited_select(channel<int> to, int i) {
  const auto never = channel<int>::unbounded();
  static_cast<void>(co_await select(to.send(i), never.receive()).timeout(1h));
}
task<> in_a_select_of_many(channel<int> to, int i) {
  std::vector<channel<int>::sending_small> all;
  all.push_back(to.send(i));
  static_cast<void>(co_await select(std::move(all)));
}
task<> in_an_inner_when_any(channel<int> to, int i) {
  static_cast<void>(co_await when_any(sleep_for(1h), to.send(i)));
}
task<> in_a_when_all(channel<int> to, int i) {
  static_cast<void>(co_await when_all(to.send(i), []() -> task<> { co_return; }()));
}
task<> in_a_scope(channel<int> to, int i) {
  co_await scope([&](task_scope& s) -> task<> {
    s.spawn(send_in_task(to, i));
    co_return;
  });
}
task<> within_a_deadline(channel<int> to, int i) {
  co_await with_deadline(1h, send_in_task(to, i));
}
constexpr send_way all_ways[] = {&send_in_task,        &within_a_limit,      &in_a_select,
                                 &in_a_limited_select, &in_a_select_of_many, &in_an_inner_when_any,
                                 &in_a_when_all,       &in_a_scope,          &within_a_deadline};

// Looks into a full channel after all sends have begun to wait.
task<> take_later(channel<int> from, std::optional<int>& got, bool goes_on) {
  for (int k = 0; k < 20; ++k) co_await yield();
  got = from.try_receive();
  if (goes_on) co_await sleep_for(1h);
}

TEST_P(given_up_sends, a_send_does_not_happen_while_a_competitor_runs) {
  for (const send_way way : all_ways) {
    run([](send_way send) -> task<> {
      const auto full = channel<int>::bounded(1);
      full.try_send(1);
      std::optional<int> got;
      const auto first = co_await when_any(send(full, 2), take_later(full, got, false));
      EXPECT_EQ(first.index(), 1u);
      EXPECT_EQ(got, 1);
      EXPECT_EQ(full.size(), 0u);

      const auto empty = channel<int>::rendezvous();
      const auto other = co_await when_any(send(empty, 2), take_later(empty, got, false));
      EXPECT_EQ(other.index(), 1u);
      EXPECT_EQ(got, std::nullopt);
    }(way));
  }
}

TEST_P(given_up_sends, a_send_happens_when_its_competitor_waits_again) {
  for (const send_way way : all_ways) {
    run([](send_way send) -> task<> {
      const auto full = channel<int>::bounded(1);
      full.try_send(1);
      std::optional<int> got;
      const auto first = co_await when_any(send(full, 2), take_later(full, got, true));
      EXPECT_EQ(first.index(), 0u);
      EXPECT_EQ(got, 1);
      EXPECT_EQ(full.try_receive(), 2);
    }(way));
  }
}

// The receiver is a competitor, which gives the value back.
TEST_P(given_up_sends, a_send_to_its_own_competitor_wins) {
  const auto receives_later = [](channel<int> from) -> task<> {
    co_await yield();
    static_cast<void>(co_await from.receive());
  };
  for (const send_way way : all_ways) {
    run([](send_way send, auto receives) -> task<> {
      const auto one = channel<int>::rendezvous();
      const auto first = co_await when_any(receives(one), send(one, 5));
      EXPECT_EQ(first.index(), 1u);
      EXPECT_EQ(one.try_receive(), 5);
    }(way, receives_later));
  }
}

TEST_P(given_up_sends, a_send_to_a_channel_that_its_competitor_closes_fails) {
  const auto closes_later = [](channel<int> what, bool goes_on) -> task<> {
    for (int k = 0; k < 20; ++k) co_await yield();
    what.close();
    if (goes_on) co_await sleep_for(1h);
  };
  for (const send_way way : all_ways) {
    run([](send_way send, auto closes) -> task<> {
      const auto one = channel<int>::rendezvous();
      auto both = when_any(send(one, 5), closes(one, true));
      EXPECT_THROW(co_await std::move(both), channel_closed);
      const auto other = channel<int>::rendezvous();
      const auto first = co_await when_any(send(other, 5), closes(other, false));
      EXPECT_EQ(first.index(), 1u);
    }(way, closes_later));
  }
}

// Nor while a branch begins, before any of them has waited.
TEST_P(given_up_sends, a_send_does_not_happen_while_a_competitor_begins) {
  const auto takes = [](channel<int> from, std::optional<int>& got) -> task<> {
    got = from.try_receive();
    co_return;
  };
  for (const send_way way : all_ways) {
    run([](send_way send, auto take) -> task<> {
      const auto one = channel<int>::rendezvous();
      std::optional<int> got;
      const auto first = co_await when_any(send(one, 5), take(one, got));
      EXPECT_EQ(first.index(), 1u);
      EXPECT_EQ(got, std::nullopt);
    }(way, takes));
  }
}

// The cancellation of the call arrives before the end of the send, or behind it.
TEST_P(given_up_sends, a_send_that_has_happened_wins_in_a_call_that_is_cancelled) {
  const auto takes_and_stops = [](channel<int> from, std::stop_source& stop,
                                  bool stops_first) -> task<> {
    for (int k = 0; k < 20; ++k) co_await yield();
    if (stops_first) stop.request_stop();
    EXPECT_EQ(from.try_receive(), 5);
    stop.request_stop();
  };
  const auto sends = [](send_way send, channel<int> to) -> task<std::size_t> {
    const auto first = co_await when_any(sleep_for(1h), send(to, 5));
    co_return first.index();
  };
  for (const send_way way : all_ways) {
    for (const bool stops_first : {false, true}) {
      run([](send_way send, bool first, auto begin, auto end) -> task<> {
        const auto one = channel<int>::rendezvous();
        std::stop_source stop;
        auto limited = with_stop(stop.get_token(), begin(send, one));
        const auto both = co_await when_all(std::move(limited), end(one, stop, first));
        EXPECT_EQ(std::get<0>(both), 1u);
      }(way, stops_first, sends, takes_and_stops));
    }
  }
}

TEST_P(given_up_sends, a_party_does_not_arrive_while_a_competitor_runs) {
  run([]() -> task<> {
    const auto arrives = [](barrier& at) -> task<> { static_cast<void>(co_await at.arrive()); };
    const auto arrives_later = [](barrier& at) -> task<> {
      co_await yield();
      static_cast<void>(co_await at.arrive());
    };
    barrier two(2);
    const auto first = co_await when_any(arrives_later(two), arrives(two));
    EXPECT_EQ(first.index(), 1u);
    // nobody has arrived now
    const auto other = co_await when_any(arrives(two), soon());
    EXPECT_EQ(other.index(), 1u);
    const auto both = co_await when_all(two.arrive(), two.arrive());
    EXPECT_NE(std::get<0>(both), std::get<1>(both));
  }());
}

// The same with threads that compete for the instants in between.

void compute(std::chrono::microseconds span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}
task<> computes_later() {
  co_await yield();
  compute(20us);
}
task<> computes_at_once() {
  compute(20us);
  co_return;
}
task<> receive_slowly(channel<int> from, std::vector<int>& counts) {
  while (const auto value = co_await from.receive()) {
    ++counts[static_cast<std::size_t>(*value)];
    co_await yield();
    compute(5us);
  }
}
task<> stops_later(std::stop_source& of) {
  co_await yield();
  compute(10us);
  of.request_stop();
}
task<bool> until_stopped(channel<int> to, int i) {
  try {
    const auto first = co_await when_any(sleep_for(1h), to.send(i));
    co_return first.index() == 1;
  } catch (const cancelled&) {
  }
  co_return false;
}

// What gives a send up.
enum class by : std::uint8_t { end_of_another, begin_of_another, stop };

task<> send_each(int count, channel<int> to, send_way send, by what) {
  for (int i = 0; i < count;) {
    if (what == by::stop) {
      std::stop_source stop;
      auto limited = with_stop(stop.get_token(), until_stopped(to, i));
      const auto both = co_await when_all(std::move(limited), stops_later(stop));
      if (std::get<0>(both)) ++i;
    } else {
      task<> other = what == by::end_of_another ? computes_later() : computes_at_once();
      const auto first = co_await when_any(send(to, i), std::move(other));
      if (first.index() == 0) ++i;
    }
  }
  to.close();
}

TEST_P(given_up_sends, a_send_beside_a_branch_that_computes_happens_once) {
  if (!threaded()) GTEST_SKIP() << "needs threads: they receive while a branch computes";
  const int count = fewer(200, 4);
  for (const send_way& way : all_ways) {
    for (const by what : {by::end_of_another, by::begin_of_another, by::stop}) {
      for (const auto& to : {channel<int>::rendezvous(), channel<int>::bounded(1)}) {
        std::vector<int> counts(static_cast<std::size_t>(count));
        runtime rt(options());
        rt.spawn(receive_slowly(to, counts));
        rt.spawn(send_each(count, to, way, what));
        rt.run();
        for (std::size_t i = 0; i < counts.size(); ++i)
          ASSERT_EQ(counts[i], 1) << "value " << i << ", way " << &way - all_ways << ", by "
                                  << static_cast<int>(what);
      }
    }
  }
}

// Two sends that compete, each in a way of its own. Both receivers are there, so that both sends
// could be taken before either coroutine has run.
task<> send_to_either(int count, channel<int> one, channel<int> other, send_way first,
                      send_way second, std::vector<std::size_t>& won) {
  for (int i = 0; i < count; ++i) {
    const auto sent = co_await when_any(first(one, i), second(other, i));
    won.push_back(sent.index());
  }
  one.close();
  other.close();
}

TEST_P(given_up_sends, of_two_sends_that_compete_the_one_that_wins_has_happened) {
  const int count = fewer(20, 2);
  for (const send_way& first : all_ways) {
    for (const send_way& second : all_ways) {
      for (const bool has_room : {false, true}) {
        const auto make = has_room ? [] { return channel<int>::bounded(1); }
                                   : [] { return channel<int>::rendezvous(); };
        const auto one = make(), other = make();
        std::vector<int> counts(static_cast<std::size_t>(count)), others(counts);
        std::vector<std::size_t> won;
        runtime rt(options());
        rt.spawn(receive_slowly(one, counts));
        rt.spawn(receive_slowly(other, others));
        rt.spawn(send_to_either(count, one, other, first, second, won));
        rt.run();
        for (std::size_t i = 0; i < counts.size(); ++i)
          ASSERT_TRUE(counts[i] == (won[i] == 0 ? 1 : 0) && others[i] == (won[i] == 1 ? 1 : 0))
              << "value " << i << ", ways " << &first - all_ways << " and " << &second - all_ways;
      }
    }
  }
}

// Both belong to the branch that wins: the second one is looked at again when the first has run.
TEST_P(given_up_sends, both_sends_of_one_branch_happen) {
  for (const send_way first : all_ways) {
    for (const send_way second : all_ways) {
      runtime rt(options());
      const auto one = channel<int>::rendezvous(), other = channel<int>::rendezvous();
      std::vector<int> counts(1), others(1);
      rt.spawn(receive_slowly(one, counts));
      rt.spawn(receive_slowly(other, others));
      rt.spawn([](auto a, auto b, channel<int> to, channel<int> also) -> task<> {
        const auto won = co_await when_any(when_all(a(to, 0), b(also, 0)), sleep_for(1h));
        EXPECT_EQ(won.index(), 0u);
        to.close();
        also.close();
      }(first, second, one, other));
      rt.run();
      EXPECT_EQ(counts[0] + others[0], 2);
    }
  }
}

// The send wins in a helper, which may lose before the send's competitor there has ended.
task<> send_in_helpers(int count, channel<int> to, channel<int> also, send_way send,
                       std::vector<std::size_t>& won) {
  for (int i = 0; static_cast<int>(won.size()) < count; ++i) {
    const int value = static_cast<int>(won.size());
    task<> first = in_helpers<void>(send(to, value), 1 + i % (helper_ways - 1));
    task<> second = in_helpers<void>(send(also, value), i / 4 % helper_ways);
    const auto sent =
        co_await when_any(std::move(first), std::move(second), sleep_for(i % 7 * 40us));
    if (sent.index() != 2) won.push_back(sent.index());
  }
  to.close();
  also.close();
}

TEST_P(given_up_sends, a_send_in_a_helper_happens_once) {
  const int count = fewer(50, 4);
  for (const send_way& way : all_ways) {
    for (const bool has_room : {false, true}) {
      const auto make = has_room ? [] { return channel<int>::bounded(1); }
                                 : [] { return channel<int>::rendezvous(); };
      const auto one = make(), other = make();
      std::vector<int> counts(static_cast<std::size_t>(count)), others(counts);
      std::vector<std::size_t> won;
      runtime rt(options());
      rt.spawn(receive_slowly(one, counts));
      rt.spawn(receive_slowly(other, others));
      rt.spawn(send_in_helpers(count, one, other, way, won));
      rt.run();
      for (std::size_t i = 0; i < counts.size(); ++i)
        ASSERT_TRUE(counts[i] == (won[i] == 0 ? 1 : 0) && others[i] == (won[i] == 1 ? 1 : 0))
            << "value " << i << ", way " << &way - all_ways << ", " << counts[i] << others[i];
    }
  }
}

TROUPE_TEST_EACH(given_up_sends, each_policy);

}  // namespace
}  // namespace troupe::test
