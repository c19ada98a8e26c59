// nats::connection with a real server: publish, subscribe, request, queue groups, headers, limits.
#include "troupe/nats/connection.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "nats/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nats::headers;
using nats::message;

class nats_connection : public nats_fixture {};

TEST_P(nats_connection, what_is_published_comes_in_order_to_all_who_subscribe) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    auto all = co_await bus.subscribe("orders.>");
    auto some = co_await bus.subscribe("orders.*.new");
    const int count = fewer(8'000);
    for (int i = 0; i < count; ++i) co_await bus.publish("orders.x.new", std::to_string(i));
    co_await bus.publish("orders.x", std::string(500'000, 'x'));
    co_await bus.flush();
    for (int i = 0; i < count; ++i) {
      const auto one = co_await all.next();
      EXPECT_EQ(one->payload, std::to_string(i));
      EXPECT_EQ(one->missed, 0u);
      if (one->payload != std::to_string(i)) co_return;
      if (i >= 100) continue;
      EXPECT_EQ(co_await next_of(some), std::to_string(i));
    }
    EXPECT_EQ((co_await next_of(all)).size(), 500'000u);
    const auto now = bus.now();
    EXPECT_TRUE(now.connected);
    EXPECT_EQ(now.connections, 1u);
    EXPECT_EQ(now.payload_bytes_max, 1024u * 1024);
  });
}

// The writer has often sent all by the time at which a publisher begins to wait.
TEST_P(nats_connection, who_waits_for_room_is_let_in_without_others) {
  nats_server server;
  nats::options narrow;
  narrow.waiting_bytes_max = 1;
  const auto test = [](connection bus) -> task<> {
    auto numbers = co_await bus.subscribe("numbers");
    const auto publish = [](connection by, int count) -> task<> {
      for (int i = 0; i < count; ++i) co_await by.publish("numbers", "x");
    };
    const int count = fewer(5'000);
    std::vector<future<>> all;
    for (int i = 0; i < 3; ++i) all.push_back(spawn(publish(bus, count)));
    for (int i = 0; i < 3 * count; ++i) EXPECT_EQ(co_await next_of(numbers), "x");
    for (future<>& one : all) co_await std::move(one);
  };
  with(server.url(), test, narrow);
}

TEST_P(nats_connection, requests_are_answered_each_by_its_own) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    auto asked = co_await bus.subscribe("double");
    const auto serve = [](connection by, nats::subscription from) -> task<> {
      while (const auto one = co_await from.next())
        co_await by.publish(one->reply, std::to_string(std::stoi(one->payload) * 2));
    };
    future<> serves = spawn(serve(bus, std::move(asked)));
    const auto ask = [](connection by, int begin, int end) -> task<> {
      for (int i = begin; i < end; ++i) {
        const message got = co_await by.request("double", std::to_string(i));
        EXPECT_EQ(got.payload, std::to_string(2 * i));
      }
    };
    std::vector<future<>> asks;
    for (int i = 0; i < 20; ++i) asks.push_back(spawn(ask(bus, 100 * i, 100 * i + fewer(100))));
    for (future<>& one : asks) co_await std::move(one);
    EXPECT_EQ(bus.now().requests, 0u);
    co_await bus.drain();
    co_await std::move(serves);
    const auto late = [&]() -> task<> { co_await bus.publish("x", ""); };
    EXPECT_EQ(co_await outcome_of(late()), "closed");
  });
}

TEST_P(nats_connection, a_request_that_nobody_answers_fails_at_once) {
  nats_server server;
  with(server.url(), [url = server.url()](connection bus) -> task<> {
    EXPECT_EQ(co_await outcome_of(bus.request("nobody", "x")), "no_responders");
    auto silent = co_await bus.subscribe("silent");
    co_await bus.flush();
    nats::options chosen;
    chosen.request_timeout = 50ms;
    const connection hasty = co_await nats::connect(url, chosen);
    EXPECT_EQ(co_await outcome_of(hasty.request("silent", "x")), "timed_out");
    EXPECT_EQ(co_await next_of(silent), "x");
    const auto asks = [&] { return bus.request("silent", "y"); };
    EXPECT_EQ(co_await outcome_of(with_deadline(5ms, asks)), "timed_out");
    EXPECT_EQ(bus.now().requests, 0u);
    EXPECT_EQ(hasty.now().requests, 0u);
  });
}

TEST_P(nats_connection, a_queue_group_shares_the_messages) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    nats::subscribe_options group;
    group.queue = "workers";
    auto one = co_await bus.subscribe("work", group);
    auto two = co_await bus.subscribe("work", group);
    auto all = co_await bus.subscribe("work");
    for (int i = 0; i < 100; ++i) co_await bus.publish("work", std::to_string(i));
    co_await bus.flush();
    co_await one.drain();
    co_await two.drain();
    std::map<std::string, int> seen;
    int by_one = 0;
    for (auto got = co_await one.next(); got; got = co_await one.next())
      ++seen[got->payload], ++by_one;
    for (auto got = co_await two.next(); got; got = co_await two.next()) ++seen[got->payload];
    EXPECT_EQ(seen.size(), 100u);
    for (const auto& [payload, times] : seen) EXPECT_EQ(times, 1) << payload;
    EXPECT_GT(by_one, 0);
    EXPECT_LT(by_one, 100);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await next_of(all), std::to_string(i));
  });
}

TEST_P(nats_connection, headers_and_traces_travel) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    auto in = co_await bus.subscribe("in");
    message out("in", "body");
    out.head.add("Kind", "one");
    out.head.add("Kind", "two");
    out.reply = "back";
    co_await bus.publish(out);
    const auto got = co_await in.next();
    EXPECT_EQ(got->payload, "body");
    EXPECT_EQ(got->reply, "back");
    EXPECT_EQ(got->head.size(), 2u);
    EXPECT_EQ(got->head.get("Kind"), "one");
    const auto trace = trace_context::begin();
    const auto publishes = [&] { return bus.publish("in", "traced"); };
    co_await with_trace(trace, publishes);
    const auto traced = co_await in.next();
    const auto there = trace_context::parse(traced->head.get("traceparent").value_or(""));
    EXPECT_EQ(there.value_or(trace_context()).trace_id, trace.trace_id);
    auto asked = co_await bus.subscribe("svc");
    const auto asks = [&] { return bus.request("svc", "q"); };
    const auto answers = [](connection by, nats::subscription& from) -> task<std::string> {
      const auto one = co_await from.next();
      co_await by.publish(one->reply, "a");
      co_return std::string(one->head.get("traceparent").value_or(""));
    };
    auto both = when_all(with_trace(trace, asks), answers(bus, asked));
    const auto [answer, header] = co_await std::move(both);
    EXPECT_EQ(answer.payload, "a");
    EXPECT_EQ(trace_context::parse(header)->trace_id, trace.trace_id);
    EXPECT_FALSE(traced->head.get("tracestate"));
    const auto with_state = trace_context::parse(trace.traceparent(), "a=1");
    co_await with_trace(*with_state, publishes);
    const auto stated = co_await in.next();
    EXPECT_EQ(stated->head.get("tracestate"), "a=1");
  });
}

TEST_P(nats_connection, a_subscription_ends_after_its_messages_or_when_it_is_given_up) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    nats::subscribe_options three;
    three.ends_after = 3;
    auto short_lived = co_await bus.subscribe("a", three);
    auto other = co_await bus.subscribe("a");
    for (int i = 0; i < 5; ++i) co_await bus.publish("a", std::to_string(i));
    co_await bus.flush();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await next_of(short_lived), std::to_string(i));
    EXPECT_EQ(co_await next_of(short_lived), "end");
    EXPECT_TRUE(short_lived.has_ended());
    EXPECT_FALSE(other.has_ended());
    EXPECT_EQ(bus.now().subscriptions, 1u);
    EXPECT_EQ(co_await next_of(other), "0");
    other.unsubscribe();
    EXPECT_TRUE(other.has_ended());
    EXPECT_EQ(co_await next_of(other), "end");
    EXPECT_EQ(bus.now().subscriptions, 0u);
    EXPECT_EQ(co_await outcome_of(bus.request("a", "")), "no_responders");
  });
}

TEST_P(nats_connection, a_slow_reader_is_told_what_it_has_missed) {
  nats_server server;
  with(server.url(), [](connection bus) -> task<> {
    nats::subscribe_options small;
    small.messages_max = 10;
    auto by_count = co_await bus.subscribe("a", small);
    small.messages_max = 100;
    small.bytes_max = 4 * 101;
    auto by_bytes = co_await bus.subscribe("a", small);
    for (int i = 0; i < 15; ++i) co_await bus.publish("a", std::string(100, 'x'));
    co_await bus.flush();
    for (int i = 0; i < 10; ++i) EXPECT_EQ((co_await by_count.next())->missed, 0u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ((co_await by_bytes.next())->missed, 0u);
    EXPECT_EQ(by_count.missed(), 5u);
    EXPECT_EQ(by_bytes.missed(), 11u);
    co_await bus.publish("a", "last");
    EXPECT_EQ((co_await by_count.next())->missed, 5u);
    EXPECT_EQ((co_await by_bytes.next())->missed, 11u);
  });
}

TEST_P(nats_connection, what_nats_does_not_allow_is_refused_before_it_is_sent) {
  nats_server server("max_payload: 1000");
  with(server.url(), [](connection bus) -> task<> {
    auto all = co_await bus.subscribe(">");
    for (const char* const bad : {"", "a b", "a.", "a\r\nPUB b 0\r\n\r\n", "*", "a.>"}) {
      EXPECT_THROW(static_cast<void>(bus.publish(bad, "")), nats::error) << bad;
      EXPECT_THROW(static_cast<void>(bus.request(bad, "")), nats::error) << bad;
    }
    EXPECT_THROW(static_cast<void>(bus.subscribe("a b")), nats::error);
    nats::subscribe_options wrong;
    wrong.queue = "a b";
    EXPECT_THROW(static_cast<void>(bus.subscribe("a", wrong)), nats::error);
    wrong.queue = "";
    wrong.messages_max = 0;
    EXPECT_THROW(static_cast<void>(bus.subscribe("a", wrong)), option_error);
    message out("a", "");
    out.reply = "x y";
    EXPECT_THROW(static_cast<void>(bus.publish(out)), nats::error);
    co_await bus.publish("a", std::string(1'000, 'x'));
    const auto large = [&]() -> task<> { co_await bus.publish("a", std::string(1'001, 'x')); };
    EXPECT_EQ(co_await outcome_of(large()), "too_large");
    EXPECT_EQ(co_await outcome_of(bus.request("a", std::string(1'001, 'x'))), "too_large");
    EXPECT_EQ((co_await next_of(all)).size(), 1'000u);
    EXPECT_EQ(bus.now().connections, 1u);
  });
}

TEST_P(nats_connection, an_empty_address_or_a_server_that_is_not_there_are_errors) {
  runtime rt(options());
  EXPECT_THROW(connection(rt, "http://x"), option_error);
  nats::options wrong;
  wrong.pings_max = 0;
  EXPECT_THROW(connection(rt, "x", wrong), option_error);
  nats::options cut;
  cut.credentials_file = std::string("a\0b", 3);
  EXPECT_THROW(connection(rt, "x", cut), option_error);
  cut.nkey_file = std::exchange(cut.credentials_file, "");
  EXPECT_THROW(connection(rt, "x", cut), option_error);
  const auto fails = []() -> task<> {
    EXPECT_EQ(co_await outcome_of(nats::connect("nats://127.0.0.1:1")), "unreachable");
  };
  rt.spawn(fails());
  const auto waits = [](connection bus) -> task<> {
    // The first waits, or comes too late.
    for (int i = 0; i < 2; ++i) {
      const auto publishes = [&]() -> task<> { co_await bus.publish("a", ""); };
      EXPECT_EQ(co_await outcome_of(publishes()), "unreachable");
    }
    EXPECT_EQ(co_await outcome_of(bus.flush()), "unreachable");
    EXPECT_THROW(static_cast<void>(bus.subscribe("a")), nats::error);
  };
  future<> done = rt.spawn(waits(connection(rt, "127.0.0.1:1")));
  rt.run();
  done.get();
}

TEST_P(nats_connection, what_was_published_is_sent_before_the_last_copy_goes) {
  nats_server server;
  with(server.url(), [url = server.url()](connection bus) -> task<> {
    auto in = co_await bus.subscribe("a");
    co_await bus.flush();
    {
      const connection other = co_await nats::connect(url);
      for (int i = 0; i < 1'000; ++i) co_await other.publish("a", std::to_string(i));
    }
    for (int i = 0; i < 1'000; ++i) EXPECT_EQ(co_await next_of(in), std::to_string(i));
  });
}

TROUPE_TEST_EACH(nats_connection, each_thread_policy);

}  // namespace
}  // namespace troupe::test
