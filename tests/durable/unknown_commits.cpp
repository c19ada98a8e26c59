// A commit whose answer is lost, with a database that stays away afterwards: nobody can say whether
// the commit was made. Callers are told so, and nobody waits until the database is back.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using database::effect;
using database::failure;
using durable::store;

struct Till {
  int cents = 0;
  int rings = 0;
  int add(int amount) { return cents += amount; }
  int get() const { return cents; }
  void ring() { ++rings; }
  int rung() const { return rings; }
  void set(durable::turn& turn) { turn.remind_every<&Till::ring>("ring", 1h); }
};
auto tills() {
  return durable::kind<Till, &Till::add, &Till::get, &Till::ring, &Till::rung, &Till::set>();
}

// While `away` is set, the database answers nothing. It goes away within the next commit, which is
// made or not.
struct lost_answers {
  bool goes = false;
  bool makes_commit = false;
  bool away = false;
};

class uncertain final : public durable::storage {
 public:
  uncertain(std::unique_ptr<durable::storage> over, lost_answers& of)
      : over_(std::move(over)), of_(of) {}
  std::string name() const override { return over_->name(); }
  task<durable::opened_storage> open() override { return over_->open(); }
  task<> keep_classes(std::vector<durable::class_shape> added) override {
    return over_->keep_classes(std::move(added));
  }
  task<std::optional<durable::stored_state>> load(durable::actor_name of) override {
    check(effect::none);
    return over_->load(std::move(of));
  }
  task<std::vector<std::string>> keys(std::string kind, durable::key_range range) override {
    check(effect::none);
    return over_->keys(std::move(kind), std::move(range));
  }
  task<std::vector<durable::stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    check(effect::none);
    return over_->inbox(after, most);
  }
  task<durable::found_message> find(durable::message_id id) override {
    check(effect::none);
    return over_->find(id);
  }
  task<std::vector<durable::stored_reminder>> reminders(std::size_t most) override {
    check(effect::none);
    return over_->reminders(most);
  }
  task<> commit(std::shared_ptr<const durable::batch> all) override {
    const bool goes = std::exchange(of_.goes, false);
    if (goes && !of_.makes_commit) of_.away = true;
    check(effect::unknown);
    auto commits = over_->commit(std::move(all));
    co_await std::move(commits);
    if (goes) of_.away = true;
    check(effect::unknown);
  }
  task<std::uint64_t> last_batch() override {
    check(effect::none);
    return over_->last_batch();
  }

 private:
  void check(effect done) const {
    if (of_.away) throw database::error(failure::lost, 0, "away", database::rule::other, done);
  }
  const std::unique_ptr<durable::storage> over_;
  lost_answers& of_;
};

// What became of a call, and how long it took.
struct ended {
  std::optional<effect> failed;
  std::chrono::nanoseconds took{0};
};
template <class T>
task<ended> end_of(future<T> asked) {
  const std::chrono::nanoseconds began = now();
  ended made;
  try {
    co_await std::move(asked).timeout(1min);
  } catch (const database::error& failed) {
    made.failed = failed.effect();
  } catch (const timed_out&) {
  }
  made.took = now() - began;
  co_return made;
}

task<> lose_a_commit(runtime& rt, bool is_made) {
  durable::simulated_database db;
  lost_answers of;
  auto opens = store::open(rt, std::make_unique<uncertain>(db.storage(), of), tills());
  const store kept = co_await std::move(opens);
  const auto till = kept.get<Till>("one");
  co_await till.ask<&Till::add>(1);
  co_await till.ask<&Till::set>();
  of = {.goes = true, .makes_commit = is_made};
  const auto id = durable::message_id::of("ten");
  auto first = end_of(till.with_id(id).ask<&Till::add>(10));
  const ended told = co_await std::move(first);
  EXPECT_EQ(told.failed, effect::unknown);
  EXPECT_LT(told.took, 10s);
  int refused_at_once = 0;
  for (int i = 0; i < 1'000; ++i) {
    auto asked = end_of(till.post<&Till::add>(100));
    const ended refused = co_await std::move(asked);
    // no wait, but turns of others, which take virtual time
    if (refused.failed == effect::none && refused.took < 1ms) ++refused_at_once;
  }
  EXPECT_EQ(refused_at_once, 1'000);
  EXPECT_TRUE(kept.counts().is_away);
  EXPECT_EQ(kept.counts().waiting, 0u);
  co_await sleep_for(150min);
  of.away = false;
  co_await sleep_for(1min);
  EXPECT_FALSE(kept.counts().is_away);
  EXPECT_EQ(co_await till.ask<&Till::get>(), is_made ? 11 : 1);
  EXPECT_EQ(co_await till.with_id(id).ask<&Till::add>(10), 11);
  // The time that has passed twice meanwhile counts once.
  EXPECT_EQ(co_await till.ask<&Till::rung>(), 1);
  co_await sleep_for(61min);
  EXPECT_EQ(co_await till.ask<&Till::rung>(), 2);
}

TEST(durable_unknown_commits, hold_nobody_while_the_database_stays_away) {
  for (const bool is_made : {true, false}) {
    SCOPED_TRACE(is_made ? "the commit is made" : "the commit is not made");
    runtime rt({.policy = policy::simulated, .seed = 3});
    future<> done = rt.spawn(lose_a_commit(rt, is_made));
    rt.run();
    done.get();
  }
}

// A server that is started again soon costs nobody an error: its answer is waited for.
task<> lose_an_answer(runtime& rt, bool is_made) {
  durable::simulated_database db;
  lost_answers of;
  auto opens = store::open(rt, std::make_unique<uncertain>(db.storage(), of), tills());
  const store kept = co_await std::move(opens);
  const auto till = kept.get<Till>("one");
  co_await till.ask<&Till::add>(1);
  of = {.goes = true, .makes_commit = is_made};
  auto first = end_of(till.ask<&Till::add>(10));
  auto comes_back = [&of]() -> task<> {
    co_await sleep_for(300ms);
    of.away = false;
  };
  future<> back = rt.spawn(comes_back());
  const ended told = co_await std::move(first);
  EXPECT_EQ(told.failed.has_value(), !is_made);
  EXPECT_TRUE(is_made || told.failed == effect::none);
  co_await std::move(back);
  co_await sleep_for(1s);
  EXPECT_EQ(co_await till.ask<&Till::get>(), is_made ? 11 : 1);
}

TEST(durable_unknown_commits, are_answered_by_a_database_that_is_back_soon) {
  for (const bool is_made : {true, false}) {
    SCOPED_TRACE(is_made ? "the commit is made" : "the commit is not made");
    runtime rt({.policy = policy::simulated, .seed = 3});
    future<> done = rt.spawn(lose_an_answer(rt, is_made));
    rt.run();
    done.get();
  }
}

}  // namespace
}  // namespace troupe::test
