// What a trace shows of durable actors: their turns, and the commits for which it waited.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/conformance.hpp"
#include "support/recorded_spans.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;
using tasks::span_record;

struct Shelf {
  std::int64_t pieces = 0;

  std::int64_t put(std::int64_t more) { return pieces += more; }
  void refuse() { throw std::invalid_argument("a secret"); }
  task<std::int64_t> move(durable::turn& turn, std::string to) {
    co_await sleep_for(1ms);
    auto asked = turn.ask<&Shelf::put>(to, 1);
    const std::int64_t there = co_await std::move(asked);
    this_call::span_attribute("shelf.there", there);
    co_return there;
  }
  void send(durable::turn& turn, std::string to) { turn.post<&Shelf::put>(to, 5); }
};

task<store> open(runtime& rt, const durable::simulated_database& in) {
  durable::options chosen;
  chosen.away_first = 1ms;
  return store::open(
      rt, in.storage(), chosen,
      durable::kind<Shelf, &Shelf::put, &Shelf::refuse, &Shelf::move, &Shelf::send>());
}

// Runs test(store, database) in a program whose spans are recorded.
template <class Test>
void run(Test test) {
  runtime rt({.policy = policy::simulated, .seed = 1});
  const auto all = [&rt, &test]() -> task<> {
    durable::simulated_database db;
    auto opens = open(rt, db);
    store opened = co_await std::move(opens);
    auto runs = test(opened, db);
    co_await std::move(runs);
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();
}

TEST(durable_spans, a_handler_runs_in_the_trace_of_who_asks) {
  recording seen;
  run([](store from, durable::simulated_database) -> task<> {
    const auto asks = [&from]() -> task<> {
      auto asked = from.get<Shelf>("a").ask<&Shelf::move>("b");
      EXPECT_EQ(co_await std::move(asked), 1);
    };
    co_await with_span("client", asks());
  });
  const span_record& client = seen.only("client");
  const span_record& mover = seen.only("Shelf::move");
  const span_record& putter = seen.only("Shelf::put");
  EXPECT_EQ(mover.at.trace_id, client.at.trace_id);
  EXPECT_EQ(mover.parent, client.at.span_id);
  EXPECT_EQ(putter.at.trace_id, client.at.trace_id);
  EXPECT_EQ(putter.parent, mover.at.span_id);
  EXPECT_EQ(text_of(mover, "shelf.there"), "1");
  EXPECT_EQ(text_of(mover, "troupe.actor.class"), "Shelf");
  // Each of the two turns was stored before its answer came.
  const auto [first, last] = seen.take().equal_range("durable commit");
  ASSERT_EQ(std::distance(first, last), 2);
  std::set<std::string> batches;
  for (auto at = first; at != last; ++at) {
    const span_record& commit = *at->second;
    EXPECT_EQ(commit.at.trace_id, client.at.trace_id);
    EXPECT_EQ(text_of(commit, "troupe.durable.turns"), "1");
    batches.insert(text_of(commit, "troupe.durable.batch"));
    EXPECT_FALSE(commit.failed);
  }
  EXPECT_EQ(batches.size(), 2u);
}

TEST(durable_spans, a_post_belongs_to_the_trace_of_its_sender) {
  recording seen;
  run([](store from, durable::simulated_database) -> task<> {
    const auto posts = [&from]() -> task<> {
      auto posted = from.get<Shelf>("a").post<&Shelf::send>("b");
      co_await std::move(posted);
    };
    co_await with_span("client", posts());
    co_await sleep_for(1s);
  });
  const span_record& client = seen.only("client");
  const span_record& sender = seen.only("Shelf::send");
  const span_record& putter = seen.only("Shelf::put");
  EXPECT_EQ(sender.parent, client.at.span_id);
  EXPECT_EQ(putter.parent, sender.at.span_id);
  EXPECT_EQ(putter.at.trace_id, client.at.trace_id);
}

TEST(durable_spans, what_fails_is_marked_and_says_no_secrets) {
  recording seen;
  run([](store from, durable::simulated_database db) -> task<> {
    const auto asks = [&from, &db]() -> task<> {
      auto refused = from.get<Shelf>("a").ask<&Shelf::refuse>();
      EXPECT_THROW(co_await std::move(refused), durable::handler_failed);
      auto put = from.get<Shelf>("a").ask<&Shelf::put>(1);
      db.set_away(true);
      EXPECT_THROW(co_await std::move(put), database::error);
    };
    co_await with_span("client", asks());
  });
  const span_record& refused = seen.only("Shelf::refuse");
  EXPECT_TRUE(refused.failed);
  EXPECT_EQ(text_of(refused, "error.type"), "std::invalid_argument");
  int failed = 0;
  const auto [first, last] = seen.take().equal_range("durable commit");
  for (auto at = first; at != last; ++at) {
    if (!at->second->failed) continue;
    ++failed;
    EXPECT_EQ(text_of(*at->second, "error.type"), "troupe::database::error");
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(std::distance(first, last), 2);
}

// Without a trace around them messages have no spans.
TEST(durable_spans, outside_of_a_trace_there_are_none) {
  recording seen;
  run([](store from, durable::simulated_database) -> task<> {
    auto asked = from.get<Shelf>("a").ask<&Shelf::move>("b");
    co_await std::move(asked);
  });
  EXPECT_TRUE(seen.take().empty());
}

}  // namespace
}  // namespace troupe::test
