// The end of a durable object in memory: its destructor is the program's, and may use the store.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;

struct Guest {
  int visits = 0;
  static inline std::function<void()> at_end;

  ~Guest() {
    if (at_end) at_end();
  }
  int visit() { return ++visits; }
  void refuse() { throw std::runtime_error("no entry"); }
};

// The ends of objects, each of which looks into the store.
class durable_objects : public testing::Test {
 protected:
  template <class Test>
  void run(Test test) {
    runtime rt({.policy = policy::simulated, .seed = 1});
    const auto all = [this, &rt, &test]() -> task<> {
      durable::options chosen;
      chosen.actors_max = 2;
      chosen.idle_max = 1s;
      chosen.away_first = 1ms;
      auto opens = store::open(rt, db_.storage(), chosen,
                               durable::kind<Guest, &Guest::visit, &Guest::refuse>());
      const store opened = co_await std::move(opens);
      Guest::at_end = [this, opened] {
        actors_ = opened.counts().actors;
        ++ends_;
      };
      auto runs = test(opened);
      co_await std::move(runs);
      Guest::at_end = nullptr;
    };
    future<> done = rt.spawn(all());
    rt.run();
    done.get();
  }
  static task<int> visit(store of, std::string key) {
    auto asked = of.get<Guest>(key).ask<&Guest::visit>();
    co_return co_await std::move(asked);
  }

  durable::simulated_database db_;
  std::size_t actors_ = 0;
  int ends_ = 0;
};

TEST_F(durable_objects, an_object_that_makes_room_for_others_may_use_the_store) {
  run([this](store all) -> task<> {
    for (int i = 0; i < 10; ++i) {
      auto visits = visit(all, std::to_string(i));
      co_await std::move(visits);
    }
    EXPECT_GE(ends_, 8);
    EXPECT_LE(actors_, 2u);
    auto again = visit(all, "0");
    EXPECT_EQ(co_await std::move(again), 2);
  });
}

TEST_F(durable_objects, so_may_one_that_was_idle) {
  run([this](store all) -> task<> {
    auto visits = visit(all, "a");
    co_await std::move(visits);
    const int before = ends_;
    co_await sleep_for(10s);
    EXPECT_GT(ends_, before);
    EXPECT_EQ(actors_, 0u);
  });
}

TEST_F(durable_objects, so_may_one_whose_handler_threw) {
  run([this](store all) -> task<> {
    auto visits = visit(all, "a");
    co_await std::move(visits);
    const int before = ends_;
    auto refused = all.get<Guest>("a").ask<&Guest::refuse>();
    EXPECT_THROW(co_await std::move(refused), durable::handler_failed);
    EXPECT_GT(ends_, before);
    auto again = visit(all, "a");
    EXPECT_EQ(co_await std::move(again), 2);
  });
}

TEST_F(durable_objects, so_may_one_that_a_failed_commit_has_taken_away) {
  run([this](store all) -> task<> {
    auto visits = visit(all, "a");
    co_await std::move(visits);
    const int before = ends_;
    db_.set_away(true);
    auto lost = visit(all, "b");
    EXPECT_THROW(co_await std::move(lost), database::error);
    auto lost_too = visit(all, "a");
    EXPECT_THROW(co_await std::move(lost_too), database::error);
    db_.set_away(false);
    co_await sleep_for(1s);
    auto again = visit(all, "a");
    EXPECT_EQ(co_await std::move(again), 2);
    EXPECT_GT(ends_, before);
  });
}

}  // namespace
}  // namespace troupe::test
