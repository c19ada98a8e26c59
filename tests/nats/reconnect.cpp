// nats::connection with real servers that are killed, restarted and paused.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "nats/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nats::message;

class nats_reconnect : public nats_fixture {
 protected:
  static nats::options quick() {
    nats::options chosen;
    chosen.reconnect_delay = 5ms;
    chosen.reconnect_delay_max = 50ms;
    chosen.reconnect_rounds = 100'000;
    return chosen;
  }
  // On a thread that may block.
  template <class Does>
  static task<> apart(Does does) {
    auto later = blocking(std::move(does));
    co_await std::move(later);
  }
  static task<> wait_for(const connection& bus, bool connected) {
    // sleeps: until a task of the connection has seen it
    while (bus.now().connected != connected) co_await sleep_for(1ms);
  }
};

TEST_P(nats_reconnect, a_server_that_is_killed_and_started_anew_serves_again) {
  nats_server server;
  with(
      server.url(),
      [&server](connection bus) -> task<> {
        auto news = co_await bus.subscribe("news");
        auto silent = co_await bus.subscribe("silent");
        co_await bus.flush();
        std::vector<future<message>> asked;
        for (int i = 0; i < 10; ++i) asked.push_back(spawn(bus.request("silent", "x")));
        for (int i = 0; i < 10; ++i) EXPECT_EQ(co_await next_of(silent), "x");
        auto kill = [&server] { server.kill(); };
        auto kills = blocking(std::move(kill));
        co_await std::move(kills);
        for (future<message>& one : asked) {
          const auto waits = [](future<message> of) -> task<message> {
            co_return co_await std::move(of);
          };
          EXPECT_EQ(co_await outcome_of(waits(std::move(one))), "lost (sent)");
        }
        co_await wait_for(bus, false);
        for (int i = 0; i < 100; ++i) co_await bus.publish("news", std::to_string(i));
        auto start = [&server] { server.start(); };
        auto starts = blocking(std::move(start));
        co_await std::move(starts);
        for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await next_of(news), std::to_string(i));
        EXPECT_EQ(bus.now().connections, 2u);
      },
      quick());
}

TEST_P(nats_reconnect, requests_end_once_each_while_a_server_is_killed) {
  nats_server server;
  with(
      server.url(),
      [&server, seeds = quick()](connection bus) -> task<> {
        auto asked = co_await bus.subscribe("svc");
        co_await bus.flush();
        const auto answers = [](connection by, nats::subscription from) -> task<> {
          while (const auto one = co_await from.next())
            co_await by.publish(one->reply, one->payload);
        };
        future<> serves = spawn(answers(bus, std::move(asked)));
        std::atomic<bool> stops{false};
        const auto asks = [](connection by, std::atomic<bool>* stop, int id) -> task<int> {
          int count = 0;
          for (; !*stop; ++count) {
            const std::string text = std::to_string(id) + "." + std::to_string(count);
            std::string got;
            try {
              const message answer = co_await by.request("svc", text);
              got = answer.payload == text ? "ok" : "wrong";
            } catch (const nats::error& failed) {
              got = nats::name_of(failed.kind());
            }
            EXPECT_TRUE(got == "ok" || got == "lost" || got == "no_responders") << got;
          }
          co_return count;
        };
        std::vector<future<int>> all;
        for (int id = 0; id < 8; ++id) all.push_back(spawn(asks(bus, &stops, id)));
        for (int i = 0; i < 3; ++i) {
          co_await sleep_for(30ms);
          auto restart = [&server] {
            server.kill();
            server.start();
          };
          auto restarts = blocking(std::move(restart));
          co_await std::move(restarts);
          co_await wait_for(bus, true);
        }
        co_await sleep_for(30ms);
        stops = true;
        for (future<int>& one : all) EXPECT_GT(co_await std::move(one), 0);
        EXPECT_EQ(bus.now().requests, 0u);
        bus.close();
        co_await std::move(serves);
      },
      quick());
}

TEST_P(nats_reconnect, another_server_of_the_list_takes_over) {
  nats_server one, two;
  std::mutex mutex;
  std::vector<nats::incident> told;
  nats::options chosen = quick();
  chosen.on_incident = [&](nats::incident what, std::string_view) {
    std::lock_guard held(mutex);
    told.push_back(what);
  };
  with(
      one.url() + "," + two.url(),
      [&](connection bus) -> task<> {
        auto news = co_await bus.subscribe("news");
        co_await bus.flush();
        const std::string first = bus.now().server;
        auto kill = [&] { (one.url().ends_with(first) ? one : two).kill(); };
        auto kills = blocking(std::move(kill));
        co_await std::move(kills);
        while (bus.now().connections < 2) co_await sleep_for(1ms);  // sleeps: as above
        EXPECT_NE(bus.now().server, first);
        co_await bus.publish("news", "here");
        EXPECT_EQ(co_await next_of(news), "here");
      },
      chosen);
  using nats::incident;
  EXPECT_EQ(told, (std::vector{incident::connected, incident::lost, incident::connected,
                               incident::closed}));
}

TEST_P(nats_reconnect, a_server_that_is_paused_is_given_up_and_found_again) {
  nats_server server;
  nats::options chosen = quick();
  chosen.ping_interval = 50ms;
  chosen.connect_timeout = 500ms;
  with(
      server.url(),
      [&server](connection bus) -> task<> {
        co_await bus.flush();
        server.pause();
        EXPECT_EQ(co_await outcome_of(bus.flush()), "lost (sent)");
        server.resume();
        co_await wait_for(bus, true);
        while (co_await outcome_of(bus.request("nobody", "")) != "no_responders") {
        }
      },
      chosen);
}

TEST_P(nats_reconnect, servers_that_a_server_tells_of_are_used) {
  const auto config = [](int own, int other) {
    return "cluster { name: c, listen: 127.0.0.1:" + std::to_string(own) +
           ", routes: [ nats://127.0.0.1:" + std::to_string(other) + " ] }";
  };
  const int a = free_port(), b = free_port();
  nats_server one(config(a, b)), two(config(b, a));
  with(
      one.url(),
      [&](connection bus) -> task<> {
        auto news = co_await bus.subscribe("news");
        co_await bus.flush();
        // What one server gets reaches the other, too, once they have found each other.
        const connection there = co_await nats::connect(two.url());
        const auto reaches = [&]() -> task<> {
          co_await there.publish("news", "x");
          co_await news.next();
        };
        while (co_await outcome_of(with_deadline(50ms, reaches)) != "ok") {
        }
        auto kill = [&] { one.kill(); };
        auto kills = blocking(std::move(kill));
        co_await std::move(kills);
        while (bus.now().connections < 2) co_await sleep_for(1ms);  // sleeps: as above
        EXPECT_TRUE(two.url().ends_with(bus.now().server));
      },
      quick());
}

TROUPE_TEST_EACH(nats_reconnect, each_thread_policy);

}  // namespace
}  // namespace troupe::test
