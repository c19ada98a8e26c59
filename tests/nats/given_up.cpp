// What NATS gives is not lost with a wait that loses (docs/protocols/given_up_waits.md).
#include <string>

#include "given_up/sources.hpp"
#include "nats/small_broker.hpp"

namespace troupe::test {
namespace {

using nats::connection;

class nats_given_up : public broker_fixture {};

task<> publish_numbers(connection by, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    co_await by.publish("numbers", number);
    const bool waits = pauses(i);
    if (waits) co_await yield();
  }
}

TEST_P(nats_given_up, subscription_next) {
  run([](small_broker& broker, nats::options chosen) -> task<> {
    const int values = fewer(1000, 10);
    for (const given_up_by way : ways_to_give_up) {
      const connection bus = co_await nats::connect(broker.url(), chosen);
      auto numbers = co_await bus.subscribe("numbers");
      const auto next = [&]() -> task<std::string> {
        const auto came = co_await numbers.next();
        co_return came->payload;
      };
      texts_source from(values, next);
      future<> publishes = spawn(publish_numbers(bus, values));
      co_await check_drained(from, values, way);
      co_await std::move(publishes);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(backends, nats_given_up, ::testing::ValuesIn(broker_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
