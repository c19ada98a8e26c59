// Messages that wait to be read count for one limit of all subscriptions: past it the largest loses
// its messages, or ends (docs/protocols/accounts.md).
#include <numeric>
#include <string>
#include <vector>

#include "nats/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;

constexpr std::size_t payload_bytes = 10'000;
constexpr std::size_t limit = std::size_t{1} << 20;
constexpr std::size_t messages = 60;  // 600 KB in each subscription

class nats_unread : public nats_fixture {};

struct tally {
  std::size_t read = 0, missed = 0, ended = 0;
};
// Reads what there is.
task<tally> read_all(nats::subscription& from) {
  tally seen;
  try {
    for (;;) {
      const auto came = co_await with_deadline(200ms, from.next());
      if (!came) break;
      ++seen.read;
    }
  } catch (const timed_out&) {
  } catch (const nats::error& e) {
    EXPECT_EQ(e.kind(), nats::failure::too_much_kept) << e.what();
    ++seen.ended;
  }
  seen.missed = from.missed();
  co_return seen;
}

// The subscriptions of several connections, one subject each; messages come to all of them.
task<> fill_and_read(std::vector<connection> all, bool ends, std::size_t limit_of_all) {
  constexpr int each = 4;
  std::vector<nats::subscription> made;
  nats::subscribe_options chosen;
  chosen.ends_when_largest = ends;
  for (const connection& bus : all) {
    for (int i = 0; i < each; ++i) {
      nats::subscription one = co_await bus.subscribe("a", chosen);
      made.push_back(std::move(one));
    }
    co_await bus.flush();
  }
  for (std::size_t i = 0; i < messages; ++i) {
    co_await all.front().publish("a", std::string(payload_bytes, 'x'));
    co_await all.front().flush();
  }
  for (const connection& bus : all) co_await bus.flush();
  tally sum;
  for (nats::subscription& one : made) {
    task<tally> reads = read_all(one);
    const tally seen = co_await std::move(reads);
    EXPECT_TRUE(seen.ended != 0 || seen.read + seen.missed == messages)
        << seen.read << " " << seen.missed;
    sum.read += seen.read;
    sum.missed += seen.missed;
    sum.ended += seen.ended;
  }
  // A lease may be one step of 64 KiB behind for each subscription.
  EXPECT_LE(sum.read * payload_bytes, limit_of_all);
  EXPECT_GE(sum.read, 1u);
  EXPECT_GE(sum.missed, 1u);
  EXPECT_EQ(sum.ended != 0, ends);
  // The limit is free again.
  auto later = co_await all.front().subscribe("b", chosen);
  co_await all.front().publish("b", "last");
  EXPECT_TRUE(co_await later.next());
}

TEST_P(nats_unread, the_largest_subscription_of_a_connection_gives_way) {
  nats_server server;
  nats::options chosen;
  chosen.unread_bytes_max = limit;
  for (const bool ends : {false, true}) {
    with(
        server.url(),
        [ends](connection bus) -> task<> {
          std::vector<connection> all{std::move(bus)};
          task<> fills = fill_and_read(std::move(all), ends, limit);
          co_await std::move(fills);
        },
        chosen);
  }
}

TEST_P(nats_unread, connections_share_a_limit) {
  nats_server server;
  nats::options chosen;
  chosen.unread = nats::unread_limit(limit, limit);
  for (const bool ends : {false, true}) {
    with(
        server.url(),
        [ends, &chosen, url = server.url()](connection bus) -> task<> {
          std::vector<connection> all{std::move(bus)};
          connection other = co_await nats::connect(url, chosen);
          all.push_back(std::move(other));
          task<> fills = fill_and_read(std::move(all), ends, limit);
          co_await std::move(fills);
        },
        chosen);
  }
}

TEST_P(nats_unread, a_reader_that_keeps_up_misses_nothing) {
  nats_server server;
  nats::options chosen;
  chosen.unread_bytes_max = limit;
  with(
      server.url(),
      [](connection bus) -> task<> {
        auto from = co_await bus.subscribe("a");
        for (int i = 0; i < 400; ++i) {
          co_await bus.publish("a", std::string(payload_bytes, 'x'));
          const auto came = co_await from.next();
          EXPECT_TRUE(came && came->missed == 0);
        }
        EXPECT_EQ(from.missed(), 0u);
      },
      chosen);
}

// Its reader is told: no later message has the number of those that were lost.
task<> lose_behind_end(connection bus) {
  nats::subscribe_options chosen;
  chosen.ends_after = messages;
  auto ended = co_await bus.subscribe("a", chosen);
  auto goes_on = co_await bus.subscribe("b");
  for (std::size_t i = 0; i < messages; ++i)
    co_await bus.publish("a", std::string(payload_bytes, 'x'));
  co_await bus.flush();
  EXPECT_TRUE(ended.has_ended());
  for (std::size_t i = 0; i + 10 < messages; ++i)
    co_await bus.publish("b", std::string(payload_bytes, 'x'));
  co_await bus.flush();
  task<tally> reads = read_all(ended);
  const tally seen = co_await std::move(reads);
  EXPECT_EQ(seen.read, 0u);
  EXPECT_EQ(seen.missed, messages);
  EXPECT_EQ(seen.ended, 1u);
  const auto end = co_await ended.next();  // it was told once
  EXPECT_FALSE(end);
  task<tally> reads_on = read_all(goes_on);
  const tally others = co_await std::move(reads_on);
  EXPECT_EQ(others.read, messages - 10);
}

TEST_P(nats_unread, a_subscription_that_had_ended_says_that_it_lost_messages) {
  nats_server server;
  nats::options chosen;
  chosen.unread = nats::unread_limit(limit, limit);
  with(
      server.url(),
      [](connection bus) -> task<> {
        task<> loses = lose_behind_end(std::move(bus));
        co_await std::move(loses);
      },
      chosen);
}

TEST_P(nats_unread, limits_without_sense_are_refused) {
  EXPECT_THROW(nats::unread_limit(1000), option_error);
  EXPECT_THROW(nats::unread_limit(limit, 1000), option_error);
}

TROUPE_TEST_EACH(nats_unread, each_thread_policy);

}  // namespace
}  // namespace troupe::test
