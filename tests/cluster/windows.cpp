// A slow node holds its senders back: nothing is lost, and no memory fills.
#include "cluster/transport/windows.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cluster/transport/bundle.hpp"
#include "cluster/transports.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::network_faults;
using cluster::transport;
using cluster::window_options;

window_options window_of(std::size_t messages, std::size_t bytes = 1024 * 1024) {
  window_options chosen;
  chosen.messages = messages;
  chosen.bytes = bytes;
  return chosen;
}

// What was sent and what was taken, and how far apart the two were.
struct tally {
  int sent = 0, taken = 0, most = 0;
  std::size_t bytes = 0, bytes_most = 0;
  void send(std::size_t size) {
    most = std::max(most, ++sent - taken);
    bytes_most = std::max(bytes_most, bytes += size);
  }
  void take(std::size_t size) { ++taken, bytes -= size; }
};

transport::taker slow_taker(tally& counts, std::chrono::nanoseconds pause) {
  return [&counts, pause](incoming one) -> task<> {
    co_await sleep_for(pause);
    EXPECT_TRUE(one.bytes.starts_with(std::to_string(counts.taken) + " "));
    counts.take(one.bytes.size());
  };
}
task<> send_all(transport& by, std::string subject, int count, std::size_t size, tally& counts) {
  for (int i = 0; i < count; ++i) {
    std::string text = std::to_string(i) + " ";
    text.resize(std::max(size, text.size()), 'x');
    const std::size_t bytes = text.size();
    task<> sends = by.send(subject, std::move(text));
    co_await std::move(sends);
    counts.send(bytes);
  }
}
task<> send_numbers_to(transport& by, std::string subject, int count) {
  for (int i = 0; i < count; ++i) {
    task<> sends = by.send(subject, std::to_string(i));
    co_await std::move(sends);
  }
}
task<> wait_until_taken(const tally& counts) {
  while (counts.taken < counts.sent) co_await sleep_for(1ms);
}

// Simulated programs with seeds.
class cluster_windows : public testing::TestWithParam<std::uint64_t> {
 protected:
  template <class Test>
  void with(const window_options& windows, Test test) {
    runtime_options chosen;
    chosen.policy = policy::simulated;
    chosen.seed = GetParam();
    runtime rt(chosen);
    test_network nodes(rt, nullptr, true);
    nodes.windows = windows;
    future<> done = rt.spawn(test(nodes));
    rt.run();
    done.get();
  }
};

TEST_P(cluster_windows, a_slow_node_holds_its_sender_back) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    network_faults narrow;
    narrow.waiting_max = 8 + 9;  // and some marks
    nodes.net.set_faults(narrow);
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    tally counts;
    co_await take(*to, "slow", slow_taker(counts, 10ms));
    co_await send_all(*by, "slow", 100, 10, counts);
    co_await wait_until_taken(counts);
    EXPECT_EQ(counts.taken, 100);
    EXPECT_LE(counts.most, 8 + 1);  // one is being taken
    EXPECT_GE(counts.most, 6);
    EXPECT_EQ(nodes.net.now().lost, 0u);
  });
}

TEST_P(cluster_windows, bytes_count_and_a_large_message_goes_alone) {
  with(window_of(1'000, 1'000), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    tally counts;
    co_await take(*to, "slow", slow_taker(counts, 10ms));
    co_await send_all(*by, "slow", 20, 300, counts);
    co_await wait_until_taken(counts);
    EXPECT_LE(counts.bytes_most, 1'000u + 300);
    tally large;
    co_await take(*to, "large", slow_taker(large, 10ms));
    co_await send_all(*by, "large", 20, 5'000, large);
    co_await wait_until_taken(large);
    EXPECT_LE(large.most, 2);
    EXPECT_EQ(large.taken, 20);
  });
}

// Takes "to" without windows, and answers marks like this. Puts all else into `came`.
task<> take_as(transport& to, std::string answer_to_marks, std::vector<std::string>& came) {
  const auto takes = [&to, &came, says = std::move(answer_to_marks)](incoming one) -> task<> {
    if (one.reply.empty()) {
      came.push_back(one.bytes);
      co_return;
    }
    task<> answers = to.answer(std::move(one.reply), one.bytes.empty() ? says : "re:");
    co_await std::move(answers);
  };
  task<> begins = take(to, "to", takes);
  co_await std::move(begins);
}

TEST_P(cluster_windows, who_does_not_say_that_it_takes_bundles_gets_none) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.bare_node("to");
    std::vector<std::string> came;
    task<> takes = take_as(*to, "", came);
    co_await std::move(takes);
    task<> sends = send_numbers_to(*by, "to", 100);
    co_await std::move(sends);
    while (came.size() < 100) co_await sleep_for(1ms);
    for (std::size_t i = 0; i < came.size(); ++i) EXPECT_EQ(came[i], std::to_string(i));
  });
}

TEST_P(cluster_windows, who_says_that_it_takes_bundles_gets_them_after_the_first_mark) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.bare_node("to");
    std::vector<std::string> came;
    task<> takes = take_as(*to, std::string(cluster::bundle_mark), came);
    co_await std::move(takes);
    task<> sends = send_numbers_to(*by, "to", 100);
    co_await std::move(sends);
    while (came.size() < 100) co_await sleep_for(1ms);
    EXPECT_EQ(came[0], "0");
    EXPECT_EQ(came[99], std::string("B\1\2\0\0\0"
                                    "99",
                                    8));
  });
}

TEST_P(cluster_windows, what_is_whole_of_a_damaged_bundle_is_taken) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.bare_node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "to", into(came));
    const std::string damaged(
        "B\1\1\0\0\0"
        "a"
        "\0\0\0\0"
        "\2\0\0\0"
        "bc"
        "\377\377\377\377"
        "de",
        23);
    for (std::size_t size = 2; size <= damaged.size(); ++size)
      EXPECT_TRUE(by->try_send("to", std::string_view(damaged).substr(0, size)));
    EXPECT_TRUE(by->try_send("to", "end"));
    std::string all;
    for (std::string one; one != "end"; all += one) one = co_await next_of(came);
    std::string expected;
    for (int i = 0; i < 10; ++i) expected += "a";
    for (int i = 0; i < 7; ++i) expected += "abc";
    EXPECT_EQ(all, expected + "end");
  });
}

TEST_P(cluster_windows, many_senders_have_a_window_each_and_others_are_not_held_back) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr to = nodes.node("to"), quick = nodes.node("quick");
    int taken = 0, sent = 0, most = 0;
    const auto slow = [&taken](incoming) -> task<> {
      co_await sleep_for(10ms);
      ++taken;
    };
    co_await take(*to, "slow", slow);
    co_await take(*quick, "quick", answering(*quick));
    std::vector<transport_ptr> senders;
    for (int i = 0; i < 4; ++i) senders.push_back(nodes.node("by" + std::to_string(i)));
    const auto sends = [&](transport& by) -> task<> {
      for (int i = 0; i < 50; ++i) {
        co_await by.send("slow", "x");
        most = std::max(most, ++sent - taken);
      }
    };
    std::vector<future<>> all;
    for (const transport_ptr& one : senders) all.push_back(spawn(sends(*one)));
    const auto began = now();
    co_await sleep_for(50ms);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(co_await outcome_of(senders[0]->request("quick", "x")), "ok re:x");
    EXPECT_LT(now() - began, 200ms);
    for (future<>& one : all) co_await std::move(one);
    EXPECT_GE(now() - began, 1'500ms);  // 200 messages in 10 ms each, but for the last windows
    EXPECT_LE(most, 4 * 8 + 4);
    while (taken < 200) co_await sleep_for(10ms);
  });
}

TEST_P(cluster_windows, a_node_that_has_gone_gives_the_room_back) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by");
    transport_ptr to = nodes.node("to");
    const auto never = [](incoming) -> task<> { co_await sleep_for(1h); };
    co_await take(*to, "slow", never);
    tally counts;
    future<> sends = spawn(send_all(*by, "slow", 100, 10, counts));
    co_await sleep_for(10s);
    EXPECT_LE(counts.sent, 8);
    nodes.net.kill("to");
    const auto began = now();
    co_await std::move(sends);
    EXPECT_LT(now() - began, 10s);
    to = nodes.node("to");  // another life
    tally again;
    co_await take(*to, "slow", slow_taker(again, 1ms));
    co_await send_all(*by, "slow", 100, 10, again);
    co_await wait_until_taken(again);
    EXPECT_EQ(again.taken, 100);
  });
}

TEST_P(cluster_windows, a_cut_holds_senders_until_it_heals) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    nodes.net.cut("by", "to");
    tally counts;
    future<> sends = spawn(send_all(*by, "numbers", 100, 10, counts));
    const auto span = GetParam() % 2 == 0 ? std::chrono::nanoseconds(2s) : 20min;
    co_await sleep_for(span);
    EXPECT_LE(counts.sent, 8);
    nodes.net.heal();
    const auto began = now();
    co_await std::move(sends);
    EXPECT_LT(now() - began, 6s);
    for (int i = counts.most; i < 100; ++i) EXPECT_NE(co_await next_of(came), "");
  });
}

TEST_P(cluster_windows, lost_messages_and_marks_cost_no_room) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    network_faults rough;
    rough.loses = 3, rough.duplicates = 5, rough.delay_max = 1ms;
    rough.reorders = GetParam() % 2 == 0;
    nodes.net.set_faults(rough);
    const auto began = now();
    tally counts;
    co_await send_all(*by, "numbers", 200, 10, counts);
    EXPECT_LT(now() - began, 10min);
    EXPECT_GT(came.size(), 80u);
  });
}

TEST_P(cluster_windows, a_wait_for_room_ends_with_its_deadline_and_lets_others_in) {
  with(window_of(100, 1'000), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto goes = channel<std::string>::unbounded(), came = channel<std::string>::unbounded();
    const auto gated = [goes, came](incoming one) -> task<> {
      static_cast<void>(co_await next_of(goes));
      static_cast<void>(came.try_send(one.bytes.substr(0, 1)));
    };
    co_await take(*to, "gated", gated);
    const auto sends = [&by](std::string text) -> task<> {
      task<> send = by->send("gated", std::move(text));
      co_await std::move(send);
    };
    co_await sends(std::string(600, 'a'));
    const auto second = [&] { return sends(std::string(600, 'b')); };
    future<std::string> late = spawn(outcome_of(with_deadline(1s, second)));
    co_await sleep_for(10ms);
    future<std::string> small = spawn(outcome_of(sends("c")));
    co_await sleep_for(10ms);
    EXPECT_FALSE(small.ready());  // it would fit, but another came first
    EXPECT_EQ(co_await std::move(late), "timed_out");
    EXPECT_EQ(co_await std::move(small), "ok ");
    goes.close();
    EXPECT_EQ(co_await next_of(came), "a");
    EXPECT_EQ(co_await next_of(came), "c");
  });
}

// The marks end without an answer then, and a call that waits sends another one.
TEST_P(cluster_windows, a_node_that_takes_nothing_for_long_is_asked_again) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto never = [](incoming) -> task<> { co_await sleep_for(1h); };
    co_await take(*to, "slow", never);
    const auto sends = [&by]() -> task<> {
      task<> send = by->send("slow", "x");
      co_await std::move(send);
    };
    std::string outcome = "ok ";
    for (int i = 0; i < 30 && outcome == "ok "; ++i) {
      auto tries = outcome_of(with_deadline(1s, sends));
      outcome = co_await std::move(tries);
    }
    EXPECT_EQ(outcome, "timed_out");
    co_await sleep_for(6min);
    auto again = outcome_of(with_deadline(1s, sends));
    EXPECT_EQ(co_await std::move(again), "timed_out");
  });
}

TEST_P(cluster_windows, a_close_ends_who_waits_for_room) {
  with(window_of(4), [](test_network& nodes) -> task<> {
    transport_ptr by = nodes.node("by");
    const transport_ptr to = nodes.node("to");
    const auto never = [](incoming) -> task<> { co_await sleep_for(1h); };
    co_await take(*to, "slow", never);
    const auto sends = [](transport& from) -> task<> {
      for (int i = 0; i < 10; ++i) co_await from.send("slow", "x");
    };
    future<std::string> sent = spawn(outcome_of(sends(*by)));
    future<std::string> asked = spawn(outcome_of(by->request("slow", "x")));
    co_await sleep_for(1s);
    EXPECT_FALSE(sent.ready());
    co_await by->close(true);
    EXPECT_EQ(co_await std::move(sent), "unreachable");
    const std::string end = co_await std::move(asked);
    EXPECT_TRUE(end == "unreachable" || end == "lost") << end;
    by.reset();
    nodes.net.kill("to");
  });
}

TEST_P(cluster_windows, answers_give_room_without_marks) {
  with(window_of(8), [](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    co_await take(*to, "echo", answering(*to));
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok re:x");
    EXPECT_EQ(nodes.net.now().sent, 200u);
  });
}

INSTANTIATE_TEST_SUITE_P(seeds, cluster_windows, testing::Range<std::uint64_t>(1, slow ? 5 : 21));

// With real servers and threads.
class cluster_windows_in_use : public transport_fixture {};

TEST_P(cluster_windows_in_use, a_slow_node_loses_nothing) {
  with([](test_network& nodes) -> task<> {
    nodes.windows = window_of(64, 64 * 1024);
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    std::atomic<int> sent{0}, taken{0}, most{0};
    const auto slow = [&](incoming one) -> task<> {
      EXPECT_EQ(one.bytes.substr(0, one.bytes.find(' ')), std::to_string(taken));
      if (taken % 16 == 0) co_await sleep_for(100us);
      most = std::max(most.load(), sent - taken);
      ++taken;
    };
    co_await take(*to, "slow", slow);
    const int count = fewer(3'000);
    for (int i = 0; i < count; ++i) {
      co_await by->send("slow", std::to_string(i) + " " + std::string(100, 'x'));
      ++sent;
    }
    EXPECT_GE(taken, count - 64 - 1);
    while (taken < count) co_await sleep_for(1ms);  // sleeps: until the rest was taken
    EXPECT_LE(most, 64 + 1);
    EXPECT_GE(most, 16);
  });
}

TEST_P(cluster_windows_in_use, a_plain_thread_sends_while_there_is_room) {
  with([](test_network& nodes) -> task<> {
    nodes.windows = window_of(64, 64 * 1024);
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    co_await take(*to, "echo", answering(*to));
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok re:x");  // it is connected
    constexpr int count = 1'000;
    auto sends = [&by] {
      for (int i = 0; i < count; ++i) {
        // sleeps: until there is room again
        while (!by->try_send("numbers", std::to_string(i))) std::this_thread::sleep_for(1ms);
      }
    };
    auto apart = blocking(std::move(sends));
    co_await std::move(apart);
    for (int i = 0; i < count; ++i) EXPECT_EQ(co_await next_of(came), std::to_string(i));
  });
}

std::vector<transport_setting> with_windows() {
  std::vector<transport_setting> all = transport_settings();
  std::erase_if(all, [](const transport_setting& one) {
    return !one.has_windows || one.at.policy == policy::simulated;
  });
  return all;
}
INSTANTIATE_TEST_SUITE_P(policies, cluster_windows_in_use, testing::ValuesIn(with_windows()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
