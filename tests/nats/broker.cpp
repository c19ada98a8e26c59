// nats::connection over real and simulated networks: connections that are cut, servers that are
// slow, and servers that are hostile.
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "nats/outcomes.hpp"
#include "nats/small_broker.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nats::message;

class nats_broker : public broker_fixture {};

task<> answer_all(connection by, nats::subscription from) {
  while (const auto one = co_await from.next()) {
    task<> answers = by.publish(one->reply, "re " + one->payload);
    co_await std::move(answers);
  }
}

// Cuts all connections some times, at moments of chance.
task<> cut_some_times(small_broker& broker, int times) {
  std::minstd_rand random(28);
  for (int i = 0; i < times; ++i) {
    co_await sleep_for(std::chrono::microseconds(random() % 5'000));
    broker.cut();
  }
}

nats::options quick() {
  nats::options chosen;
  chosen.reconnect_delay = 1ms;
  chosen.reconnect_delay_max = 5ms;
  return chosen;
}

TEST_P(nats_broker, each_request_ends_once_however_often_connections_are_cut) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection server = co_await nats::connect(broker.url(), chosen);
        const connection bus = co_await nats::connect(broker.url(), chosen);
        auto asked = co_await server.subscribe("svc");
        co_await server.flush();
        future<> serves = spawn(answer_all(server, std::move(asked)));
        std::map<std::string, int> ends;
        const auto asks = [](connection by, int id, std::map<std::string, int>* to) -> task<> {
          for (int i = 0; i < 50; ++i) {
            const std::string text = std::to_string(id) + "." + std::to_string(i);
            std::string how;
            try {
              const message got = co_await by.request("svc", text);
              how = got.payload == "re " + text ? "ok" : "wrong: " + got.payload;
            } catch (const nats::error& failed) {
              how = nats::name_of(failed.kind());
            } catch (const timed_out&) {
              how = "timed_out";
            }
            static std::mutex mutex;
            std::lock_guard held(mutex);
            ++(*to)[how];
          }
        };
        std::vector<future<>> all;
        for (int id = 0; id < 8; ++id) all.push_back(spawn(asks(bus, id, &ends)));
        task<> cuts = cut_some_times(broker, 10);
        co_await std::move(cuts);
        for (future<>& one : all) co_await std::move(one);
        int sum = 0;
        for (const auto& [how, times] : ends) {
          sum += times;
          EXPECT_TRUE(how == "ok" || how == "lost" || how == "no_responders" || how == "timed_out")
              << how;
        }
        EXPECT_EQ(sum, 8 * 50);
        EXPECT_EQ(bus.now().requests, 0u);
        // And all is well again.
        for (std::string how = "lost"; how != "ok"; how = co_await outcome_of(server.flush()))
          EXPECT_TRUE(how.starts_with("lost")) << how;
        for (std::string how = "lost"; how != "ok"; how = co_await outcome_of(bus.flush()))
          EXPECT_TRUE(how.starts_with("lost")) << how;
        while (co_await outcome_of(bus.request("svc", "x")) != "ok") {
        }
        server.close();
        co_await std::move(serves);
      },
      [] {
        nats::options chosen = quick();
        chosen.request_timeout = 500ms;
        return chosen;
      }());
}

TEST_P(nats_broker, nothing_is_published_twice_or_out_of_order) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection from = co_await nats::connect(broker.url(), chosen);
        const connection to = co_await nats::connect(broker.url(), chosen);
        auto numbers = co_await to.subscribe("n");
        const auto publishes = [](connection by) -> task<> {
          for (int i = 0; i < 3'000; ++i) {
            co_await by.publish("n", std::to_string(i));
            if (i % 10 == 0) co_await sleep_for(100us);
          }
        };
        future<> published = spawn(publishes(from));
        task<> cuts = cut_some_times(broker, 6);
        co_await std::move(cuts);
        co_await std::move(published);
        for (bool good = false; !good;) {
          const std::string how = co_await outcome_of(to.flush());
          co_await from.publish("n", "3000");
          good = how == "ok" && co_await outcome_of(from.flush()) == "ok";
        }
        int last = -1, count = 0;
        for (std::string next = co_await next_of(numbers); last != 3'000; ++count) {
          if (count > 0) next = co_await next_of(numbers);
          EXPECT_GT(std::stoi(next), last);
          last = std::stoi(next);
        }
        EXPECT_GT(count, 10);
      },
      quick());
}

TEST_P(nats_broker, a_publisher_waits_while_the_server_takes_nothing) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection bus = co_await nats::connect(broker.url(), chosen);
        auto all = co_await bus.subscribe("a");
        co_await bus.flush();
        broker.silent = true;
        int sent = 0;
        // The buffers of the system take some, too.
        const std::string large(100'000, 'x');
        for (int waits = 0; waits < 2 && sent < 1'000; ++waits) {
          for (; bus.try_publish("a", large); ++sent) waits = 0;
          EXPECT_LT(bus.now().waiting_bytes, chosen.waiting_bytes_max + large.size() + 100);
          // sleeps: so that the system takes what it can
          co_await sleep_for(20ms);
        }
        EXPECT_LT(sent, 1'000);
        const auto publishes = [&] { return bus.publish("a", large); };
        const std::string how = co_await outcome_of(with_deadline(5ms, publishes));
        EXPECT_TRUE(how == "timed_out" || how == "ok") << how;
        sent += how == "ok";
        broker.silent = false;
        co_await bus.publish("a", "last");
        for (int i = 0; i < sent; ++i) EXPECT_EQ((co_await next_of(all)).size(), large.size());
        EXPECT_EQ(co_await next_of(all), "last");
      },
      [] {
        nats::options chosen = quick();
        chosen.waiting_bytes_max = 300'000;
        return chosen;
      }());
}

TEST_P(nats_broker, what_waits_without_a_server_is_sent_to_the_next) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection bus = co_await nats::connect(broker.url(), chosen);
        auto all = co_await bus.subscribe("a");
        co_await bus.flush();
        broker.ends = true;
        broker.cut();
        while (bus.now().connected) co_await sleep_for(1ms);
        int sent = 0;
        const std::string large(10'000, 'x');
        while (bus.try_publish("a", large)) ++sent;
        EXPECT_EQ(sent, 10);
        const auto publishes = [&] { return bus.publish("a", large); };
        EXPECT_EQ(co_await outcome_of(with_deadline(5ms, publishes)), "timed_out");
        future<message> asked = spawn(bus.request("a", "question"));
        broker.ends = false;
        for (int i = 0; i < sent; ++i) EXPECT_EQ((co_await next_of(all)).size(), large.size());
        const auto question = co_await all.next();
        EXPECT_EQ(question->payload, "question");
        co_await bus.publish(question->reply, "answer");
        const message got = co_await std::move(asked);
        EXPECT_EQ(got.payload, "answer");
      },
      [] {
        nats::options chosen = quick();
        chosen.waiting_bytes_max = 95'000;
        chosen.reconnect_rounds = 100'000;
        return chosen;
      }());
}

TEST_P(nats_broker, a_server_that_is_silent_is_given_up) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection bus = co_await nats::connect(broker.url(), chosen);
        broker.silent = true;
        const std::string how = co_await outcome_of(bus.request("a", "x"));
        EXPECT_EQ(how, "lost (sent)");
        broker.silent = false;
        while (co_await outcome_of(bus.request("a", "x")) != "no_responders") {
        }
      },
      [] {
        nats::options chosen = quick();
        chosen.ping_interval = 10ms;
        chosen.pings_max = 2;
        chosen.connect_timeout = 200ms;
        chosen.reconnect_rounds = 100'000;
        return chosen;
      }());
}

TEST_P(nats_broker, a_connection_is_closed_for_good_after_its_rounds) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection bus = co_await nats::connect(broker.url(), chosen);
        auto all = co_await bus.subscribe("a");
        co_await bus.flush();
        broker.ends = true;
        broker.cut();
        EXPECT_EQ(co_await next_of(all), "unreachable");
        const auto late = [&]() -> task<> { co_await bus.publish("x", ""); };
        EXPECT_EQ(co_await outcome_of(late()), "unreachable");
      },
      [] {
        nats::options chosen = quick();
        chosen.reconnect_rounds = 3;
        return chosen;
      }());
}

TEST_P(nats_broker, servers_that_are_none_are_refused) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const std::string info = "INFO {\"max_payload\":100}\r\n";
        const std::vector<std::pair<std::string, const char*>> all{
            {"HTTP/1.1 400 Bad Request\r\n\r\n", "unreachable"},
            {"PONG\r\n", "unreachable"},
            {"INFO\r\n", "unreachable"},
            {"INFO {\r\n", "unreachable"},
            {"INFO []\r\n", "unreachable"},
            {"INFO {}\n", "unreachable"},
            {"INFO " + std::string(70'000, ' ') + "{}\r\n", "unreachable"},
            {"X" + std::string(70'000, 'x'), "unreachable"},
            {std::string(5'000, '\0'), "unreachable"},
            {info + "MSG a 1 0\r\n\r\n", "unreachable"},
            {info + "MSG a 1 99999999999999999999\r\n", "unreachable"},
            {info + "-ERR 'Authorization Violation'\r\n", "denied"},
            {"INFO {\"tls_required\":true}\r\nPONG\r\n", "unreachable"},
            {"INF", "unreachable"},
        };
        broker.ends = true;
        for (const auto& [says, how] : all) {
          broker.greeting = says;
          EXPECT_EQ(co_await outcome_of(nats::connect(broker.url(), chosen)), how) << says;
        }
        // One that says nothing.
        broker.ends = false;
        broker.silent = true;
        broker.greeting = "INF";
        EXPECT_EQ(co_await outcome_of(nats::connect(broker.url(), chosen)), "unreachable");
        broker.silent = false;
      },
      [] {
        nats::options chosen = quick();
        chosen.connect_timeout = 300ms;
        return chosen;
      }());
}

TEST_P(nats_broker, a_server_that_becomes_hostile_is_left) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        for (const std::string& says :
             {std::string("MSG a 1 99999999\r\n"), std::string("MSG a 1\r\n"),
              std::string("INFO {\r\n"), std::string("X\r\n"), std::string(5'000, 'x'),
              std::string("MSG a 9 1\r\nxx\r\n"), std::string("HMSG a 9 5 4\r\n")}) {
          broker.then_says = says;
          const connection bus(*broker.on, broker.url(), chosen);
          while (bus.now().connections < 2) co_await sleep_for(1ms);
          bus.close();
        }
        // What harms nothing.
        broker.then_says =
            "MSG a 99 0\r\n\r\nPONG\r\n+OK\r\n-ERR 'x'\r\n"
            "HMSG _INBOX.x 77 3 3\r\nabc\r\nMSG _INBOX.x.1 1 0\r\n\r\n"
            "INFO {\"connect_urls\":[\"\",\"x y\",\":\"]}\r\n";
        const connection bus = co_await nats::connect(broker.url(), chosen);
        EXPECT_EQ(co_await outcome_of(bus.request("a", "x")), "no_responders");
        EXPECT_EQ(bus.now().connections, 1u);
      },
      [] {
        nats::options chosen = quick();
        chosen.message_bytes_max = 1'000'000;
        return chosen;
      }());
}

TEST_P(nats_broker, a_drain_lets_readers_read_and_answer_what_has_come) {
  run(
      [](small_broker& broker, nats::options chosen) -> task<> {
        const connection server = co_await nats::connect(broker.url(), chosen);
        const connection bus = co_await nats::connect(broker.url(), chosen);
        auto asked = co_await server.subscribe("svc");
        co_await server.flush();
        std::vector<future<message>> all;
        for (int i = 0; i < 100; ++i) all.push_back(spawn(bus.request("svc", std::to_string(i))));
        const auto slow = [](connection by, nats::subscription from) -> task<int> {
          int count = 0;
          while (const auto one = co_await from.next()) {
            co_await sleep_for(100us);
            co_await by.publish(one->reply, one->payload);
            ++count;
          }
          co_return count;
        };
        future<int> serves = spawn(slow(server, std::move(asked)));
        for (std::size_t i = 0; i < 10; ++i)
          EXPECT_EQ((co_await std::move(all[i])).payload, std::to_string(i));
        co_await server.drain();
        EXPECT_EQ(co_await std::move(serves), 100);
        for (std::size_t i = 10; i < all.size(); ++i)
          EXPECT_EQ((co_await std::move(all[i])).payload, std::to_string(i));
        EXPECT_EQ(co_await outcome_of(bus.request("svc", "late")), "no_responders");
      },
      quick());
}

INSTANTIATE_TEST_SUITE_P(backends, nats_broker, ::testing::ValuesIn(broker_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
