// The numbers of a connection to NATS, among those of its observed runtime.
#include <chrono>
#include <string>

#include "nats/fixture.hpp"
#include "runtime/observing/observer.hpp"
#include "support/observed.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nlohmann::json;

class nats_numbers : public nats_fixture {
 protected:
  runtime_options observed() const {
    runtime_options all = options();
    all.observe = true;
    return all;
  }
  // The connections of the first runtime.
  static json shown() {
    return json::parse(observing::ask("summary"))["runtimes"][0].value("nats", json::array());
  }
};

task<> exchange(connection bus) {
  nats::subscribe_options few;
  few.messages_max = 3;
  auto all = co_await bus.subscribe("orders", few);
  auto asked = co_await bus.subscribe("prices");
  for (int i = 0; i < 5; ++i) co_await bus.publish("orders", "pen");
  co_await bus.flush();
  const auto answer = [](connection by, nats::subscription from) -> task<> {
    const auto question = co_await from.next();
    co_await by.publish(question->reply, "12");
  };
  auto answers = spawn(answer(bus, std::move(asked)));
  EXPECT_EQ((co_await bus.request("prices", "pen")).payload, "12");
  co_await std::move(answers);
  EXPECT_THROW(co_await bus.request("nobody", "pen"), nats::error);
}

TEST_P(nats_numbers, count_messages_and_time_requests) {
  nats_server server;
  nats::options chosen;
  chosen.name = "shop";
  runtime rt(observed());
  json seen, after;
  const auto test = [&]() -> task<> {
    {
      const connection bus(rt, server.url(), chosen), other(rt, server.url(), chosen);
      auto exchanges = exchange(bus);
      co_await std::move(exchanges);
      co_await other.flush();
      seen = shown();
      bus.close();
      other.close();
    }
    while (!(after = shown()).empty()) co_await sleep_for(5ms);
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();

  ASSERT_EQ(seen.size(), 2u) << seen;
  const json& numbers = seen[0];
  EXPECT_EQ(numbers["connection"], "shop");
  EXPECT_EQ(seen[1]["connection"], "shop (2)");
  EXPECT_EQ(numbers["connected"], 1) << numbers;
  EXPECT_EQ(numbers["connections"], 1) << numbers;
  EXPECT_EQ(numbers["published_messages"], 8) << numbers;  // 5, two requests, an answer
  // 5, a question, an answer, and the server's that nobody is there
  EXPECT_EQ(numbers["received_messages"], 8) << numbers;
  EXPECT_EQ(numbers["missed_messages"], 2) << numbers;
  EXPECT_EQ(numbers["failed_requests"], 1) << numbers;
  EXPECT_EQ(numbers["request_seconds"]["count"], 1) << numbers;
  EXPECT_EQ(numbers["requests_in_flight"], 0) << numbers;
  EXPECT_EQ(seen[1]["published_messages"], 0) << seen;
}

TROUPE_TEST_EACH(nats_numbers, each_thread_policy);

}  // namespace
}  // namespace troupe::test
