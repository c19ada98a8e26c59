// The faults of the simulated network: each does what it says, and none that was not wanted.
#include "troupe/cluster/simulated_network.hpp"

#include <algorithm>
#include <set>

#include "cluster/transports.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::network_faults;
using cluster::transport;

class cluster_simulated_network : public testing::TestWithParam<std::uint64_t> {
 protected:
  template <class Test>
  void with(Test test) {
    runtime_options chosen;
    chosen.policy = policy::simulated;
    chosen.seed = GetParam();
    runtime rt(chosen);
    test_network nodes(rt, nullptr);
    future<> done = rt.spawn(test(nodes));
    rt.run();
    done.get();
  }
};

task<> send_numbers(transport& by, std::string subject, int count) {
  for (int i = 0; i < count; ++i) co_await by.send(subject, std::to_string(i));
}
task<std::string> ask_within(transport& by, std::string subject, std::chrono::milliseconds span) {
  const auto asks = [&] { return by.request(subject, "x"); };
  co_return co_await outcome_of(with_deadline(span, asks));
}
// All that has come some time later.
task<std::vector<int>> all_of(channel<std::string> from) {
  co_await sleep_for(10s);
  std::vector<int> got;
  while (const auto one = from.try_receive()) got.push_back(std::stoi(*one));
  co_return got;
}

TEST_P(cluster_simulated_network, a_cut_is_silent_until_it_heals) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two"), three = nodes.node("3");
    co_await take(*one, "one", answering(*one));
    co_await take(*two, "two", answering(*two));
    co_await take(*three, "three", answering(*three));
    nodes.net.cut("one", "two");
    EXPECT_EQ(co_await ask_within(*one, "two", 1s), "timed_out");
    EXPECT_EQ(co_await ask_within(*two, "one", 1s), "timed_out");
    EXPECT_EQ(co_await ask_within(*one, "three", 1s), "ok re:x");
    EXPECT_EQ(co_await ask_within(*three, "two", 1s), "ok re:x");
    EXPECT_EQ(co_await ask_within(*one, "nobody", 1s), "unreachable");
    nodes.net.heal("two", "one");
    EXPECT_EQ(co_await ask_within(*one, "two", 1s), "ok re:x");
    nodes.net.cut_off("three"), nodes.net.cut_off("3");
    EXPECT_FALSE(three->is_connected());
    EXPECT_EQ(co_await ask_within(*one, "three", 1s), "timed_out");
    EXPECT_EQ(co_await ask_within(*three, "nobody", 1s), "timed_out");
    EXPECT_EQ(co_await ask_within(*three, "three", 1s), "ok re:x");
    nodes.net.heal();
    EXPECT_TRUE(three->is_connected());
    EXPECT_EQ(co_await ask_within(*three, "one", 1s), "ok re:x");
  });
}

TEST_P(cluster_simulated_network, a_way_may_be_cut_in_one_direction) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two");
    const auto came = channel<std::string>::unbounded();
    co_await take(*one, "one", into(came));
    co_await take(*two, "two", answering(*two));
    co_await take(*two, "numbers", into(came));
    nodes.net.cut_one_way("two", "one");
    EXPECT_EQ(co_await ask_within(*one, "two", 1s), "timed_out");  // its answer is lost
    co_await one->send("numbers", "1");
    EXPECT_EQ(co_await next_of(came), "1");
    co_await two->send("one", "2");
    nodes.net.heal();
    co_await two->send("one", "3");
    EXPECT_EQ(co_await next_of(came), "3");
  });
}

TEST_P(cluster_simulated_network, what_a_cut_holds_comes_when_it_heals) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two");
    const auto came = channel<std::string>::unbounded();
    co_await take(*two, "numbers", into(came));
    network_faults holds;
    holds.holds = true;
    holds.delay_max = 20ms;
    nodes.net.set_faults(holds);
    co_await send_numbers(*one, "numbers", 5);
    nodes.net.cut("one", "two");
    const auto first = co_await all_of(came);
    nodes.net.heal();
    auto all = co_await all_of(came);
    all.insert(all.begin(), first.begin(), first.end());
    EXPECT_EQ(all, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

TEST_P(cluster_simulated_network, delays_keep_the_order_of_a_pair) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded(), other = channel<std::string>::unbounded();
    network_faults slow;
    slow.delay_max = 50ms;
    nodes.net.set_faults(slow);
    co_await take(*to, "one", into(came));
    co_await take(*to, "two", into(other));
    const auto began = now();
    auto both = when_all(send_numbers(*one, "one", 100), send_numbers(*two, "two", 100));
    co_await std::move(both);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await next_of(came), std::to_string(i));
    EXPECT_GT(now() - began, 10ms);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await next_of(other), std::to_string(i));
    EXPECT_LT(now() - began, 1s);
  });
}

TEST_P(cluster_simulated_network, losses_duplicates_and_disorder_come_when_they_are_wanted) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two");
    const auto came = channel<std::string>::unbounded();
    co_await take(*two, "numbers", into(came));
    network_faults wanted;
    wanted.loses = 10;
    nodes.net.set_faults(wanted);
    co_await send_numbers(*one, "numbers", 1'000);
    const auto some = co_await all_of(came);
    EXPECT_TRUE(std::ranges::is_sorted(some));
    EXPECT_GT(some.size(), 800u);
    EXPECT_LT(some.size(), 970u);
    wanted.loses = 0, wanted.duplicates = 10;
    nodes.net.set_faults(wanted);
    co_await send_numbers(*one, "numbers", 1'000);
    const auto more = co_await all_of(came);
    EXPECT_TRUE(std::ranges::is_sorted(more));
    EXPECT_EQ(std::set<int>(more.begin(), more.end()).size(), 1'000u);
    EXPECT_GT(more.size(), 1'030u);
    EXPECT_LT(more.size(), 1'200u);
    wanted.duplicates = 0, wanted.reorders = true;
    nodes.net.set_faults(wanted);
    co_await send_numbers(*one, "numbers", 1'000);
    auto mixed = co_await all_of(came);
    EXPECT_FALSE(std::ranges::is_sorted(mixed));
    EXPECT_EQ(std::set<int>(mixed.begin(), mixed.end()).size(), 1'000u);
    EXPECT_EQ(mixed.size(), 1'000u);
    const auto counts = nodes.net.now();
    EXPECT_EQ(counts.sent, 3'000u);
    EXPECT_EQ(counts.lost, 1'000u - some.size());
    EXPECT_EQ(counts.delivered, some.size() + more.size() + mixed.size());
  });
}

TEST_P(cluster_simulated_network, a_request_to_a_node_that_dies_is_lost_or_silent) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by");
    transport_ptr to = nodes.node("to"), other = nodes.node("other");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "silent", into(came));
    future<std::string> asked = spawn(ask_within(*by, "silent", 10s));
    EXPECT_EQ(co_await next_of(came), "x");
    nodes.net.kill("to");
    EXPECT_EQ(co_await std::move(asked), "lost");
    EXPECT_EQ(co_await ask_within(*by, "silent", 10s), "unreachable");
    EXPECT_EQ(co_await outcome_of(to->send("silent", "x")), "unreachable");
    to = nodes.node("to");  // another life
    co_await take(*to, "silent", answering(*to));
    EXPECT_EQ(co_await ask_within(*by, "silent", 10s), "ok re:x");

    network_faults silent;
    silent.silent_deaths = true;
    nodes.net.set_faults(silent);
    co_await take(*other, "never", into(came));
    future<std::string> second = spawn(ask_within(*by, "never", 10s));
    EXPECT_EQ(co_await next_of(came), "x");
    co_await other->close(true);
    EXPECT_EQ(co_await std::move(second), "timed_out");
  });
}

TEST_P(cluster_simulated_network, what_has_no_room_is_lost) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two");
    const auto came = channel<std::string>::unbounded();
    network_faults narrow;
    narrow.waiting_max = 10;
    nodes.net.set_faults(narrow);
    const auto slow = [came](incoming got) -> task<> {
      co_await sleep_for(10ms);
      static_cast<void>(came.try_send(std::move(got.bytes)));
    };
    co_await take(*two, "numbers", slow);
    co_await send_numbers(*one, "numbers", 100);
    const auto got = co_await all_of(came);
    EXPECT_GE(got.size(), 10u);
    EXPECT_LT(got.size(), 100u);
    EXPECT_EQ(nodes.net.now().lost, 100 - got.size());
    narrow.waiting_max = 0;
    EXPECT_THROW(nodes.net.set_faults(narrow), option_error);
  });
}

TEST_P(cluster_simulated_network, a_queue_group_answers_from_this_side_of_a_cut) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), one = nodes.node("one"), two = nodes.node("two");
    co_await take(*one, "work", answering(*one, "one:"), "workers");
    co_await take(*two, "work", answering(*two, "two:"), "workers");
    nodes.net.cut("by", "one");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(co_await ask_within(*by, "work", 1s), "ok two:x");
    nodes.net.cut("by", "two");
    EXPECT_EQ(co_await ask_within(*by, "work", 1s), "timed_out");
  });
}

// The same seed makes the same choices.
std::vector<int> one_run(std::uint64_t seed) {
  runtime_options chosen;
  chosen.policy = policy::simulated;
  chosen.seed = seed;
  runtime rt(chosen);
  test_network nodes(rt, nullptr);
  network_faults rough;
  rough.loses = 5, rough.duplicates = 5, rough.delay_max = 5ms, rough.reorders = true;
  nodes.net.set_faults(rough);
  const auto test = [](test_network& in) -> task<std::vector<int>> {
    const transport_ptr one = in.node("one"), two = in.node("two"), to = in.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    auto both = when_all(send_numbers(*one, "numbers", 30), send_numbers(*two, "numbers", 30));
    co_await std::move(both);
    co_return co_await all_of(came);
  };
  future<std::vector<int>> done = rt.spawn(test(nodes));
  rt.run();
  return done.get();
}

TEST_P(cluster_simulated_network, a_seed_repeats_a_run) {
  const auto first = one_run(GetParam());
  EXPECT_EQ(first, one_run(GetParam()));
  EXPECT_NE(first, one_run(GetParam() + 100));
}

INSTANTIATE_TEST_SUITE_P(seeds, cluster_simulated_network,
                         testing::Range<std::uint64_t>(1, slow ? 5 : 21));

}  // namespace
}  // namespace troupe::test
