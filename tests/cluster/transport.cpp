// What all transports promise: over NATS, and over the simulated network without faults.
#include "cluster/transport/transport.hpp"

#include <algorithm>
#include <map>

#include "cluster/transports.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::transport;

class cluster_transport : public transport_fixture {};

task<> send_numbers(transport& by, std::string subject, std::string before, int count) {
  for (int i = 0; i < count; ++i) {
    task<> sends = by.send(subject, before + std::to_string(i));
    co_await std::move(sends);
  }
}

TEST_P(cluster_transport, what_one_node_sends_comes_in_order) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr one = nodes.node("one"), two = nodes.node("two"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    const int count = fewer(2'000);
    auto both = when_all(send_numbers(*one, "numbers", "a", count),
                         send_numbers(*two, "numbers", "b", count));
    co_await std::move(both);
    std::map<char, int> next;
    for (int i = 0; i < 2 * count; ++i) {
      const std::string got = co_await next_of(came);
      EXPECT_EQ(got.substr(1), std::to_string(next[got[0]]++));
    }
    EXPECT_EQ(next['a'], count);
    EXPECT_EQ(next['b'], count);
  });
}

TEST_P(cluster_transport, requests_are_answered_each_by_its_own) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    co_await take(*to, "echo", answering(*to));
    const auto ask = [](transport& from, int id) -> task<> {
      for (int i = 0; i < fewer(50); ++i) {
        const std::string text = std::to_string(id) + "." + std::to_string(i);
        EXPECT_EQ(co_await outcome_of(from.request("echo", text)), "ok re:" + text);
      }
    };
    std::vector<future<>> all;
    for (int id = 0; id < 20; ++id) all.push_back(spawn(ask(*by, id)));
    for (future<>& one : all) co_await std::move(one);
    EXPECT_EQ(co_await outcome_of(to->request("echo", "itself")), "ok re:itself");
  });
}

TEST_P(cluster_transport, bytes_travel_as_they_are) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    co_await take(*to, "echo", answering(*to, ""));
    std::string all(100'000, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i * 7 / 5);
    EXPECT_EQ(co_await outcome_of(by->request("echo", all)), "ok " + all);
    if (nodes.has_windows()) {
      EXPECT_THROW(static_cast<void>(by->send("echo", "")), usage_error);
    } else {
      EXPECT_EQ(co_await outcome_of(by->request("echo", "")), "ok ");
    }
  });
}

TEST_P(cluster_transport, a_request_that_nobody_takes_did_not_run) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    EXPECT_EQ(co_await outcome_of(by->request("nobody", "x")), "unreachable");
    EXPECT_EQ(co_await outcome_of(by->send("nobody", "x")), "ok ");
    co_await take(*to, "echo", answering(*to));
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok re:x");
    co_await to->leave("echo", {});
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "unreachable");
    co_await take(*to, "echo", answering(*to, "again:"));
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok again:x");
  });
}

TEST_P(cluster_transport, who_takes_may_take_many_subjects) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    co_await take(*to, "a.*.c", answering(*to, "star:"));
    co_await take(*to, "b.>", answering(*to, "rest:"));
    EXPECT_EQ(co_await outcome_of(by->request("a.x.c", "1")), "ok star:1");
    EXPECT_EQ(co_await outcome_of(by->request("b.x.c", "2")), "ok rest:2");
    EXPECT_EQ(co_await outcome_of(by->request("a.x", "3")), "unreachable");
    EXPECT_EQ(co_await outcome_of(by->request("a.x.c.d", "3")), "unreachable");
    EXPECT_EQ(co_await outcome_of(by->request("b", "3")), "unreachable");
  });
}

TEST_P(cluster_transport, a_taker_gets_one_message_after_the_other) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    int running = 0, most = 0;
    const auto slow = [&running, &most, came](incoming one) -> task<> {
      most = std::max(most, ++running);
      co_await sleep_for(100us);
      --running;
      static_cast<void>(came.try_send(std::move(one.bytes)));
    };
    co_await take(*to, "slow", slow);
    const int count = fewer(200);
    co_await send_numbers(*by, "slow", "", count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(co_await next_of(came), std::to_string(i));
    EXPECT_EQ(most, 1);
    co_await to->close(false);
  });
}

TEST_P(cluster_transport, a_queue_group_shares_the_messages) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), one = nodes.node("one"), two = nodes.node("two");
    const auto first = channel<std::string>::unbounded(),
               second = channel<std::string>::unbounded(), all = channel<std::string>::unbounded();
    co_await take(*one, "work", into(first), "workers");
    co_await take(*two, "work", into(second), "workers");
    co_await take(*two, "work", into(all));
    const int count = 100;
    co_await send_numbers(*by, "work", "", count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(co_await next_of(all), std::to_string(i));
    std::map<std::string, int> seen;
    co_await one->close(false);
    co_await two->close(false);
    first.close(), second.close();
    std::string got;
    int by_one = 0;
    while ((got = co_await next_of(first)) != "end") ++seen[got], ++by_one;
    while ((got = co_await next_of(second)) != "end") ++seen[got];
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
    for (const auto& [what, times] : seen) EXPECT_EQ(times, 1) << what;
    EXPECT_GT(by_one, 0);
    EXPECT_LT(by_one, count);
  });
}

TEST_P(cluster_transport, a_message_has_a_largest_size) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "large", into(came));
    co_await take(*by, "own", into(came));  // so that it is connected
    const std::string most(by->bytes_max(), 'x');
    EXPECT_EQ(co_await outcome_of(by->send("large", most + "y")), "too_large");
    EXPECT_EQ(co_await outcome_of(by->request("large", most + "y")), "too_large");
    EXPECT_EQ(co_await outcome_of(by->send("large", most)), "ok ");
    EXPECT_EQ((co_await next_of(came)).size(), most.size());
  });
}

TEST_P(cluster_transport, an_answer_may_come_too_late_or_twice) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    std::vector<std::string> kept;
    const auto came = channel<std::string>::unbounded();
    const auto keep = [&kept, came](incoming one) -> task<> {
      kept.push_back(one.reply);
      static_cast<void>(came.try_send(std::move(one.bytes)));
      co_return;
    };
    co_await take(*to, "silent", keep);
    const auto asks = [&by] { return by->request("silent", "x"); };
    EXPECT_EQ(co_await outcome_of(with_deadline(20ms, asks)), "timed_out");
    EXPECT_EQ(co_await next_of(came), "x");
    co_await to->answer(kept[0], "late");
    co_await to->answer("no subject of ours", "x");
    co_await to->answer("", "x");
    future<std::string> second = spawn(by->request("silent", "y"));
    EXPECT_EQ(co_await next_of(came), "y");
    co_await to->answer(kept[1], "first");
    co_await to->answer(kept[1], "second");
    EXPECT_EQ(co_await std::move(second), "first");
    co_await take(*to, "echo", answering(*to));
    EXPECT_EQ(co_await outcome_of(by->request("echo", "z")), "ok re:z");
  });
}

TEST_P(cluster_transport, a_close_sends_and_takes_what_was_given) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "numbers", into(came));
    EXPECT_TRUE(to->is_connected());
    const int count = fewer(1'000);
    co_await send_numbers(*by, "numbers", "", count);
    co_await by->close(false);
    EXPECT_FALSE(by->is_connected());
    for (int i = 0; i < count; ++i) EXPECT_EQ(co_await next_of(came), std::to_string(i));
    EXPECT_EQ(co_await outcome_of(by->send("numbers", "x")), "unreachable");
    EXPECT_EQ(co_await outcome_of(by->request("numbers", "x")), "unreachable");
    EXPECT_EQ(co_await outcome_of(take(*by, "numbers", into(came))), "unreachable");
    co_await by->answer("nobody", "x");
    co_await by->close(false);
  });
}

TEST_P(cluster_transport, a_close_at_once_ends_what_waits) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "silent", into(came));
    future<std::string> asked = spawn(outcome_of(by->request("silent", "x")));
    EXPECT_EQ(co_await next_of(came), "x");
    co_await by->close(true);
    EXPECT_EQ(co_await std::move(asked), "lost");
    EXPECT_EQ(co_await outcome_of(by->send("silent", "x")), "unreachable");
    EXPECT_EQ(co_await outcome_of(by->request("silent", "x")), "unreachable");
    co_await by->close(false);
    co_await by->close(true);
  });
}

TEST_P(cluster_transport, what_came_before_a_close_at_once_is_not_taken_after_it) {
  with([](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded(), goes = channel<std::string>::unbounded();
    const auto slow = [came, goes](incoming one) -> task<> {
      static_cast<void>(came.try_send(std::move(one.bytes)));
      static_cast<void>(co_await next_of(goes));
    };
    co_await take(*to, "slow", slow);
    co_await take(*to, "echo", answering(*to));
    co_await send_numbers(*by, "slow", "", 3);
    EXPECT_EQ(co_await next_of(came), "0");
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok re:x");
    co_await to->close(true);
    goes.close();
    co_await sleep_for(5ms);  // sleeps: for what must not come
    EXPECT_EQ(came.size(), 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(transports, cluster_transport, testing::ValuesIn(transport_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
