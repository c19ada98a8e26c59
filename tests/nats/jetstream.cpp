// nats::connection::store: messages that JetStream acknowledges.
#include <signal.h>

#include <chrono>
#include <string>

#include "nats/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nats::message;
using nats::store_options;
using nats::stored;

class nats_jetstream : public nats_fixture {
 protected:
  static constexpr const char* config = "jetstream { store_dir: FOLDER/js }";
  static task<> make_stream(const connection& bus) {
    const message made = co_await bus.request(
        "$JS.API.STREAM.CREATE.S", R"({"name":"S","subjects":["s.>"],"storage":"file"})");
    EXPECT_EQ(made.payload.find("error"), std::string::npos) << made.payload;
  }
  static task<int> refusal_of(task<stored> call) {
    try {
      static_cast<void>(co_await std::move(call));
    } catch (const nats::stream_error& failed) {
      EXPECT_EQ(failed.kind(), nats::failure::refused);
      EXPECT_EQ(failed.code(), 400);
      co_return failed.error_code();
    }
    co_return 0;
  }
};

TEST_P(nats_jetstream, stores_in_order_and_once_for_each_id) {
  nats_server server(config);
  with(server.url(), [](connection bus) -> task<> {
    co_await make_stream(bus);
    const stored first = co_await bus.store("s.a", "1");
    EXPECT_EQ(first.stream, "S");
    EXPECT_EQ(first.sequence, 1u);
    EXPECT_FALSE(first.duplicate);
    store_options once;
    once.id = "two";
    EXPECT_EQ((co_await bus.store("s.a", "2", once)).sequence, 2u);
    const stored again = co_await bus.store("s.a", "2", once);
    EXPECT_EQ(again.sequence, 2u);
    EXPECT_TRUE(again.duplicate);
    message out("s.b", "3");
    out.head.add("Kind", "x");
    EXPECT_EQ((co_await bus.store(out)).sequence, 3u);
    EXPECT_EQ(co_await outcome_of(bus.store("t.a", "x")), "no_responders");
  });
}

TEST_P(nats_jetstream, what_is_not_as_expected_is_refused) {
  nats_server server(config);
  with(server.url(), [](connection bus) -> task<> {
    co_await make_stream(bus);
    co_await bus.store("s.a", "1");
    store_options wrong;
    wrong.expected_last = 7;
    EXPECT_EQ(co_await refusal_of(bus.store("s.a", "x", wrong)), 10071);
    wrong.expected_last = 1;
    wrong.expected_stream = "T";
    EXPECT_EQ(co_await refusal_of(bus.store("s.a", "x", wrong)), 10060);
    wrong.expected_stream = "S";
    wrong.expected_last_of_subject = 0;
    EXPECT_EQ((co_await bus.store("s.b", "2", wrong)).sequence, 2u);
    store_options by_id;
    by_id.expected_last_id = "none";
    EXPECT_EQ(co_await refusal_of(bus.store("s.a", "x", by_id)), 10070);
    auto other = co_await bus.subscribe("other");
    const auto answers = [](connection by, nats::subscription& from) -> task<> {
      const auto one = co_await from.next();
      co_await by.publish(one->reply, "no JSON");
    };
    auto both = when_all(outcome_of(bus.store("other", "x")), answers(bus, other));
    const auto [how, nothing] = co_await std::move(both);
    EXPECT_EQ(how, "refused (sent)");
  });
}

TEST_P(nats_jetstream, what_was_acknowledged_is_there_after_a_kill) {
  nats_server server(config);
  nats::options chosen;
  chosen.reconnect_delay = 5ms;
  chosen.reconnect_delay_max = 50ms;
  chosen.reconnect_rounds = 100'000;
  with(
      server.url(),
      [&server](connection bus) -> task<> {
        co_await make_stream(bus);
        std::uint64_t acknowledged = 0;
        const auto stores = [](connection by, std::uint64_t* last) -> task<> {
          for (int i = 0; i < 200; ++i) {
            store_options once;
            once.id = std::to_string(i);
            // Again with the same id, until it is known.
            for (std::string how; how != "ok";) {
              const auto one = [&]() -> task<> {
                const stored kept = co_await by.store("s.a", once.id, once);
                EXPECT_GE(kept.sequence, *last);
                *last = kept.sequence;
              };
              how = co_await outcome_of(one());
            }
          }
        };
        future<> done = spawn(stores(bus, &acknowledged));
        for (int i = 0; i < 2; ++i) {
          co_await sleep_for(20ms);
          auto restart = [&server] {
            server.kill();
            server.start();
          };
          auto restarts = blocking(std::move(restart));
          co_await std::move(restarts);
        }
        co_await std::move(done);
        EXPECT_EQ(acknowledged, 200u);
      },
      chosen);
}

TROUPE_TEST_EACH(nats_jetstream, each_thread_policy);

}  // namespace
}  // namespace troupe::test
