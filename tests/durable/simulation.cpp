// Durable actors under seeds: the database refuses, is slow and loses the answers of commits, and
// the program is killed and started again. Money is conserved, each transfer has its effect once,
// and each one that was acknowledged is there. Stores with a planted mistake are found out.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "durable/transfers.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;
using transfers::Account;
using transfers::accounts;

// What is left out of a store.
enum class mistake : std::uint8_t { none, no_dedupe, no_stored_replies };

// The storage behind it, less what the mistake leaves out.
class mistaken final : public durable::storage {
 public:
  mistaken(std::unique_ptr<durable::storage> over, mistake made)
      : over_(std::move(over)), made_(made) {}
  std::string name() const override { return over_->name(); }
  task<durable::opened_storage> open() override { return over_->open(); }
  task<> keep_classes(std::vector<durable::class_shape> added) override {
    return over_->keep_classes(std::move(added));
  }
  task<std::optional<durable::stored_state>> load(durable::actor_name of) override {
    return over_->load(std::move(of));
  }
  task<std::vector<std::string>> keys(std::string kind, durable::key_range range) override {
    return over_->keys(std::move(kind), std::move(range));
  }
  task<std::vector<durable::stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    return over_->inbox(after, most);
  }
  task<durable::found_message> find(durable::message_id id) override {
    if (made_ != mistake::no_dedupe) co_return co_await over_->find(id);
    co_return durable::found_message();
  }
  task<std::vector<durable::stored_reminder>> reminders(std::size_t most) override {
    return over_->reminders(most);
  }
  task<> commit(std::shared_ptr<const durable::batch> all) override {
    if (made_ != mistake::no_stored_replies) return over_->commit(std::move(all));
    auto less = std::make_shared<durable::batch>(*all);
    std::erase_if(less->answers,
                  [](const durable::stored_answer& one) { return !one.asker.is_none(); });
    return over_->commit(std::move(less));
  }
  task<std::uint64_t> last_batch() override { return over_->last_batch(); }

 private:
  const std::unique_ptr<durable::storage> over_;
  const mistake made_;
};

constexpr std::uint64_t accounts_count = 4;
constexpr std::int64_t opening = 1'000;

class bank_under_faults {
 public:
  bank_under_faults(runtime& rt, mistake made) : rt_(rt), made_(made) {}

  // Returns what is wrong at the end; "" for nothing.
  task<std::string> run() {
    auto starts = restart();
    co_await std::move(starts);
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto opens = until_acknowledged<&Account::open>(name(i), "open", opening);
      co_await std::move(opens);
    }
    faults_.refuses = 25;
    faults_.loses = 15;
    faults_.delay_max = 200us;
    db_.set_faults(faults_);
    std::vector<future<>> clients;
    for (int client = 0; client < 3; ++client) clients.push_back(rt_.spawn(sends(client)));
    for (int kill = 0; kill < 6; ++kill) {
      co_await sleep_for(std::chrono::microseconds(200 + kit::random_number() % 3'000));
      if (kit::random_number() % 6 == 0) {
        auto fails = fail_for_long();
        co_await std::move(fails);
        continue;  // the same store works on
      }
      auto again = restart();
      co_await std::move(again);
    }
    for (auto& one : clients) co_await std::move(one);
    db_.set_faults({});
    auto checks = check();
    co_return co_await std::move(checks);
  }

 private:
  static std::string name(std::uint64_t number) { return "account " + std::to_string(number); }

  // The answers of commits are lost, and nobody can say for a while whether they were made.
  task<> fail_for_long() {
    db_.set_faults({.refuses = 0, .loses = 1, .delay_max = 200us});
    co_await sleep_for(std::chrono::microseconds(kit::random_number() % 500));
    db_.set_away(true);
    co_await sleep_for(std::chrono::milliseconds(900 + kit::random_number() % 400));
    db_.set_faults(faults_);
    db_.set_away(false);
    co_await sleep_for(std::chrono::microseconds(kit::random_number() % 3'000));
  }

  task<> restart() {
    for (;;) {
      std::optional<store> opened;
      try {
        auto opens = store::open(rt_, std::make_unique<mistaken>(db_.storage(), made_), options(),
                                 accounts());
        opened.emplace(co_await std::move(opens));
      } catch (const database::error&) {
      }
      if (opened) {
        store_ = std::move(opened);
        co_return;
      }
      co_await sleep_for(50us);
    }
  }
  static durable::options options() {
    durable::options chosen;
    chosen.actors_max = 2;
    chosen.retry_first = 1ms;
    chosen.away_first = 1ms;
    return chosen;
  }

  // As a client does that does not know whether it was heard.
  template <auto Method, class... Args>
  task<> until_acknowledged(std::string to, std::string id, Args... args) {
    for (;;) {
      bool acknowledged = false;
      try {
        auto asked = store_->get<Account>(to)
                         .with_id(durable::message_id::of(id))
                         .template ask<Method>(args...)
                         .timeout(5ms);
        co_await std::move(asked);
        acknowledged = true;
      } catch (const error&) {
      }
      if (acknowledged) co_return;
      co_await sleep_for(std::chrono::microseconds(kit::random_number() % 1'000));
    }
  }

  task<> sends(int client) {
    for (int i = 0; i < 6; ++i) {
      const std::string transfer = std::to_string(client) + "." + std::to_string(i);
      // Accounts ask those with smaller numbers alone, so that no asks wait for each other.
      const std::uint64_t from = kit::random_number() % 2;
      const std::uint64_t over = from + 1;
      const std::uint64_t to = over + 1 + kit::random_number() % (accounts_count - over - 1);
      const auto amount = static_cast<std::int64_t>(1 + kit::random_number() % 50);
      switch (kit::random_number() % 3) {
        case 0: {
          const bool up = kit::random_number() % 2 == 0;
          auto call = until_acknowledged<&Account::push>(name(up ? from : to), transfer,
                                                         name(up ? to : from), transfer, amount);
          co_await std::move(call);
          break;
        }
        case 1: {
          auto call =
              until_acknowledged<&Account::pull>(name(to), transfer, name(from), transfer, amount);
          co_await std::move(call);
          break;
        }
        default: {
          auto call = until_acknowledged<&Account::relay>(name(to), transfer, name(over),
                                                          name(from), transfer, amount);
          co_await std::move(call);
          expected_.push_back(transfer + "'");
        }
      }
      expected_.push_back(transfer);
    }
  }

  task<std::string> check() {
    // What still waits in the inbox is handled; after faults the store waits for up to 10 s.
    for (int round = 0; round < 10'000 && db_.dump().find("inbox ") != std::string::npos; ++round)
      co_await sleep_for(round < 1'000 ? 5ms : 1s);
    std::int64_t sum = 0;
    std::map<std::string, int> paid, got;
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      std::optional<Account> found;
      while (!found) {
        try {
          auto asked = store_->get<Account>(name(i)).ask<&Account::all>();
          found = co_await std::move(asked);
        } catch (const database::error&) {
          // Of a fault from before.
        }
        if (!found) co_await sleep_for(1ms);
      }
      const Account& one = *found;
      sum += one.cents;
      for (const auto& [transfer, times] : one.paid) paid[transfer] += times;
      for (const auto& [transfer, times] : one.got) got[transfer] += times;
    }
    std::string wrong;
    if (sum != static_cast<std::int64_t>(accounts_count) * opening)
      wrong += "the sum is " + std::to_string(sum) + "; ";
    for (const std::string& transfer : expected_) {
      if (paid[transfer] != 1 || got[transfer] != 1)
        wrong += "transfer " + transfer + " was paid " + std::to_string(paid[transfer]) +
                 " times and got " + std::to_string(got[transfer]) + " times; ";
    }
    const std::string rows = db_.dump();
    if (rows.find("inbox ") != std::string::npos || rows.find("dead ") != std::string::npos)
      wrong += "messages are left: " + rows;
    co_return wrong;
  }

  runtime& rt_;
  const mistake made_;
  durable::simulated_database db_;
  durable::simulated_faults faults_;
  std::optional<store> store_;
  std::vector<std::string> expected_;
};

std::string what_is_wrong(std::uint64_t seed, mistake made) {
  runtime rt({.policy = policy::simulated, .seed = seed});
  bank_under_faults bank(rt, made);
  future<std::string> result = rt.spawn(bank.run());
  rt.run();
  return result.get();
}

TEST(durable_simulation, each_transfer_has_its_effect_once) {
  for_each_seed(chosen_seeds(slow ? 40 : 200),
                [](std::uint64_t seed) { EXPECT_EQ(what_is_wrong(seed, mistake::none), ""); });
}

void expect_found(mistake made) {
  test::expect_found([made](std::uint64_t seed) { return what_is_wrong(seed, made); });
}
TEST(durable_simulation, a_store_without_the_dedupe_is_found) { expect_found(mistake::no_dedupe); }
TEST(durable_simulation, a_store_without_the_stored_replies_is_found) {
  expect_found(mistake::no_stored_replies);
}

struct Runner {
  int loads = 0;
  int load() { return ++loads; }
  int arrive() { return ++arrived; }
  static inline int arrived = 0;
};

// Both are in memory, and the first one is asked first. Returns the place of the second one.
task<int> place_of_the_second(runtime& rt) {
  durable::simulated_database db;
  auto opens =
      store::open(rt, db.storage(), durable::kind<Runner, &Runner::load, &Runner::arrive>());
  const store all = co_await std::move(opens);
  auto first = all.get<Runner>("first"), second = all.get<Runner>("second");
  co_await first.ask<&Runner::load>();
  co_await second.ask<&Runner::load>();
  Runner::arrived = 0;
  auto first_place = first.ask<&Runner::arrive>();
  auto second_place = second.ask<&Runner::arrive>();
  co_await std::move(first_place);
  co_return co_await std::move(second_place);
}

TEST(durable_simulation, ready_actors_run_in_any_order) {
  std::set<int> places;
  for (std::uint64_t seed = 1; seed <= 64; ++seed) {
    runtime rt({.policy = policy::simulated, .seed = seed});
    future<int> place = rt.spawn(place_of_the_second(rt));
    rt.run();
    places.insert(place.get());
  }
  EXPECT_EQ(places, (std::set<int>{1, 2}));
}

struct Bell {
  int rings = 0;
  void set(durable::turn& turn) { turn.remind_every<&Bell::ring>("again", 5ms); }
  void set_once(durable::turn& turn, int after_ms) {
    // The clock of a simulated store begins at this second.
    turn.remind_at<&Bell::ring>("once", std::chrono::sys_seconds(1'700'000'000s) + 1ms * after_ms);
  }
  void ring() { ++rings; }
  int count() const { return rings; }
};

task<int> rings_of_a_slow_store(runtime& rt, durable::simulated_faults faults) {
  durable::simulated_database db;
  auto opens =
      store::open(rt, db.storage(), durable::kind<Bell, &Bell::set, &Bell::ring, &Bell::count>());
  const store all = co_await std::move(opens);
  auto sets = all.get<Bell>("a").ask<&Bell::set>();
  co_await std::move(sets);
  db.set_faults(faults);
  co_await sleep_for(60s);
  db.set_faults({});
  co_await sleep_for(10s);
  auto counts = all.get<Bell>("a").ask<&Bell::count>();
  co_return co_await std::move(counts);
}

// Of a class that the next program does not have.
struct OldBell {
  int rings = 0;
  void set(durable::turn& turn) {
    turn.remind_at<&OldBell::ring>("once", std::chrono::sys_seconds(1'700'000'000s) + 1s);
  }
  void ring() { ++rings; }
};

task<std::vector<int>> rings_beside_old_ones(runtime& rt) {
  constexpr int many = 150;
  durable::simulated_database db;
  {
    auto opens =
        store::open(rt, db.storage(), durable::kind<OldBell, &OldBell::set, &OldBell::ring>(),
                    durable::kind<Bell, &Bell::set_once, &Bell::ring, &Bell::count>());
    const store all = co_await std::move(opens);
    for (int i = 0; i < many; ++i) {
      auto sets = all.get<OldBell>(std::to_string(i)).ask<&OldBell::set>();
      co_await std::move(sets);
      auto sets_too = all.get<Bell>(std::to_string(i)).ask<&Bell::set_once>(1'001);
      co_await std::move(sets_too);
    }
  }
  auto opens = store::open(rt, db.storage(), durable::kind<Bell, &Bell::ring, &Bell::count>());
  const store all = co_await std::move(opens);
  co_await sleep_for(10s);
  std::vector<int> found;
  for (int i = 0; i < many; ++i) {
    auto counts = all.get<Bell>(std::to_string(i)).ask<&Bell::count>();
    found.push_back(co_await std::move(counts));
  }
  co_return found;
}

TEST(durable_simulation, reminders_of_classes_that_have_gone_stop_no_others) {
  runtime rt({.policy = policy::simulated, .seed = 1});
  future<std::vector<int>> rings = rt.spawn(rings_beside_old_ones(rt));
  rt.run();
  EXPECT_EQ(rings.get(), std::vector<int>(150, 1));
}

// How often each of many reminders has come.
task<std::vector<int>> rings_of_many(runtime& rt, durable::simulated_faults faults) {
  durable::simulated_database db;
  durable::options chosen;
  chosen.away_first = 1ms;
  auto opens = store::open(rt, db.storage(), chosen,
                           durable::kind<Bell, &Bell::set_once, &Bell::ring, &Bell::count>());
  const store all = co_await std::move(opens);
  for (int i = 0; i < 100; ++i) {
    auto sets = all.get<Bell>(std::to_string(i)).ask<&Bell::set_once>(100 + i / 3);
    co_await std::move(sets);
  }
  db.set_faults(faults);
  co_await sleep_for(30s);
  db.set_faults({});
  co_await sleep_for(10s);
  std::vector<int> found;
  for (int i = 0; i < 100; ++i) {
    auto counts = all.get<Bell>(std::to_string(i)).ask<&Bell::count>();
    found.push_back(co_await std::move(counts));
  }
  co_return found;
}

TEST(durable_simulation, each_reminder_comes_once) {
  for_each_seed(chosen_seeds(20, 20), [](std::uint64_t seed) {
    for (const std::uint64_t loses : {0u, 20u}) {
      runtime rt({.policy = policy::simulated, .seed = seed});
      future<std::vector<int>> rings = rt.spawn(rings_of_many(rt, {loses, loses, 30ms}));
      rt.run();
      EXPECT_EQ(rings.get(), std::vector<int>(100, 1));
    }
  });
}

TEST(durable_simulation, a_reminder_comes_again_whatever_its_commits_take) {
  for_each_seed(chosen_seeds(10, 10), [](std::uint64_t seed) {
    for (const std::uint64_t loses : {0u, 20u}) {
      runtime rt({.policy = policy::simulated, .seed = seed});
      future<int> rings = rt.spawn(rings_of_a_slow_store(rt, {loses, loses, 30ms}));
      rt.run();
      EXPECT_GT(rings.get(), 1'000);
    }
  });
}

}  // namespace
}  // namespace troupe::test
