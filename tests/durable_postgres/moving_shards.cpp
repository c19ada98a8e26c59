// Durable actors of three nodes on one PostgreSQL database or SQLite file: shards move while
// transfers are made, in good order and without a word; nodes are replaced, and those that were go
// on trying; messages between nodes are lost and doubled; connections are cut, or the file is
// locked. Money is conserved, and each acknowledged transfer has its effect once.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/engine/engine.hpp"
#include "durable/transfers.hpp"
#include "durable_postgres/place.hpp"
#include "durable_postgres/shards_table.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/database/error.hpp"

namespace troupe::test {
namespace {

using durable::held_shard;
using durable::stored_message;
using durable::parts::engine;
using transfers::Account;
using namespace std::chrono_literals;

constexpr std::uint32_t shards_used = 4;
constexpr std::size_t nodes_count = 3;
constexpr std::uint64_t accounts_count = 6;
constexpr std::int64_t opening = 1'000;

bool one_in(std::uint64_t many) { return kit::random_number() % many == 0; }
std::chrono::microseconds up_to(std::uint64_t us) {
  return std::chrono::microseconds(kit::random_number() % us);
}
std::uint32_t shard_of_key(std::string_view key) {
  return static_cast<std::uint32_t>(key.back()) % shards_used;
}

class no_answer : public error {
  using error::error;
};

// One life of a node.
struct node {
  std::string life;
  std::shared_ptr<engine> runs;
};
using node_ref = std::shared_ptr<node>;

// Who is where, as all nodes would know it at once if there were no network between them. A node
// that loses a shard has no lease for it any more before another one gets it.
class directory {
 public:
  bool owns(const std::string& life, const held_shard& one) const {
    std::lock_guard held(mutex_);
    const lease& now = leases_[one.shard];
    return now.owner == life && now.fence == one.fence;
  }
  node_ref owner_of(std::uint32_t shard) const {
    std::lock_guard held(mutex_);
    for (const node_ref& one : nodes_) {
      if (one != nullptr && one->life == leases_[shard].owner) return one;
    }
    return nullptr;
  }
  node_ref at(std::size_t number) const {
    std::lock_guard held(mutex_);
    return nodes_[number];
  }
  held_shard held(std::uint32_t shard) const {
    std::lock_guard locked(mutex_);
    return {shard, leases_[shard].fence};
  }
  void set_node(std::size_t at, node_ref now) {
    std::lock_guard held(mutex_);
    nodes_[at] = std::move(now);
  }
  void set_owner(std::string life, const held_shard& one) {
    std::lock_guard held(mutex_);
    leases_[one.shard] = {std::move(life), one.fence};
  }
  std::vector<std::uint32_t> shards_of(const std::string& life) const {
    std::lock_guard held(mutex_);
    std::vector<std::uint32_t> found;
    for (std::uint32_t shard = 0; shard < shards_used; ++shard) {
      if (leases_[shard].owner == life) found.push_back(shard);
    }
    return found;
  }

 private:
  struct lease {
    std::string owner;
    std::uint64_t fence = 0;
  };
  mutable std::mutex mutex_;
  std::array<lease, shards_used> leases_;
  std::array<node_ref, nodes_count> nodes_;
};

// As a network does, and the nodes at its ends.
task<durable::bytes> forward_over(const directory& all, const std::atomic<bool>& faults,
                                  stored_message what) {
  if (faults && one_in(12)) throw no_answer("it did not go");
  const node_ref to = all.owner_of(shard_of_key(what.to.key));
  if (to == nullptr) throw no_answer("nobody has it");
  if (faults && what.named && one_in(8)) {
    stored_message copy = what;
    auto first = to->runs->deliver(std::move(copy));
    co_await sleep_for(up_to(2'000));
  }
  auto delivers = to->runs->deliver(std::move(what));
  durable::bytes got = co_await std::move(delivers);
  if (faults && one_in(12)) throw no_answer("its answer was lost");
  co_return got;
}

class scope final : public durable::parts::shard_scope {
 public:
  scope(const directory& all, const std::atomic<bool>& faults, std::string life)
      : all_(all), faults_(faults), life_(std::move(life)) {}
  std::uint32_t shard_of(std::string_view, std::string_view key) const noexcept override {
    return shard_of_key(key);
  }
  bool acts_for(const held_shard& one) const noexcept override { return all_.owns(life_, one); }
  task<durable::bytes> forward(stored_message what) override {
    return forward_over(all_, faults_, std::move(what));
  }
  task<bool> waits_for(durable::parts::cycle_question what) override {
    const node_ref at = all_.owner_of(shard_of_key(what.to.key));
    if (at == nullptr) throw no_answer("nobody has it");
    return engine::waits_for(at->runs, std::move(what));
  }

 private:
  const directory& all_;
  const std::atomic<bool>& faults_;
  const std::string life_;
};

class ignored_answer final : public durable::parts::answer_to {
 public:
  future<> get_future() { return to_.get_future(); }
  void give(std::span<const std::byte>) noexcept override { to_.set_value(); }
  void fail(const std::exception_ptr& why) noexcept override { to_.set_exception(why); }

 private:
  promise<> to_;
};

template <auto Method, class... Args>
future<> ask(const node_ref& by, const std::string& to, const std::string& id, Args... args) {
  using facts = durable::parts::method_of<decltype(Method)>;
  auto answer = std::make_unique<ignored_answer>();
  future<> later = answer->get_future();
  durable::parts::request made;
  made.kind = &durable::parts::class_tag<Account>;
  made.method = &durable::parts::method_tag<Method>;
  made.key = to;
  made.arguments = durable::parts::encode_arguments<facts>(args...);
  made.id = durable::message_id::of(id);
  made.answer = std::move(answer);
  by->runs->send(std::move(made));
  return later;
}

class bank_of_nodes {
 public:
  bank_of_nodes(runtime& rt, const shards_table& table) : rt_(rt), table_(table) {}

  task<> run(int changes) {
    for (std::size_t i = 0; i < nodes_count; ++i) {
      auto starts = start_node(i);
      co_await std::move(starts);
    }
    for (std::uint32_t shard = 0; shard < shards_used; ++shard) {
      auto gives = give(shard, shard % nodes_count);
      co_await std::move(gives);
    }
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto opens = until_acknowledged<&Account::open>(name(i), "open", opening);
      co_await std::move(opens);
    }
    faults_ = true;
    std::vector<future<>> clients;
    for (int client = 0; client < 3; ++client) clients.push_back(rt_.spawn(sends(client)));
    for (int change = 0; change < changes; ++change) {
      const int before = acknowledged_;
      while (acknowledged_ < before + 3) co_await sleep_for(1ms);
      auto changes_it = change_something();
      co_await std::move(changes_it);
    }
    stops_ = true;
    for (auto& one : clients) co_await std::move(one);
    faults_ = false;
    auto checks = check();
    co_await std::move(checks);
  }

 private:
  static std::string name(std::uint64_t number) { return "account " + std::to_string(number); }

  task<> start_node(std::size_t at) {
    auto made = std::make_shared<node>();
    made->life = "life " + std::to_string(++lives_);
    durable::options chosen;
    chosen.actors_max = 3;
    chosen.retry_first = 1ms;
    chosen.away_first = 1ms;
    while (made->runs == nullptr) {
      auto around = std::make_shared<scope>(all_, faults_, made->life);
      std::vector<durable::parts::kind_table> kinds;
      kinds.push_back(transfers::accounts());
      auto tried = std::make_shared<engine>(rt_, table_.storage_of(rt_, made->life), chosen,
                                            std::move(kinds), std::move(around));
      try {
        auto opens = tried->open();
        co_await std::move(opens);
        made->runs = std::move(tried);
      } catch (const database::error& failed) {
        std::cout << failed.what() << '\n';
      }
    }
    all_.set_node(at, std::move(made));
  }

  // The row changes when no transaction of its owner is under way.
  task<> give(std::uint32_t shard, std::size_t to) {
    const node_ref whom = all_.at(to);
    held_shard got;
    const auto changes_row = [&] { got = table_.give(shard, whom->life); };
    auto changes = blocking(changes_row);
    co_await std::move(changes);
    all_.set_owner(whom->life, got);
    whom->runs->gained(one_shard(got));
  }
  static std::vector<held_shard> one_shard(held_shard one) { return {one}; }
  static std::vector<std::uint32_t> one_number(std::uint32_t one) { return {one}; }
  task<> take_over(std::uint32_t shard, std::size_t to) {
    all_.set_owner("", {shard, 0});
    return give(shard, to);
  }

  task<> change_something() {
    const auto shard = static_cast<std::uint32_t>(kit::random_number() % shards_used);
    const std::size_t to = kit::random_number() % nodes_count;
    const node_ref from = all_.owner_of(shard);
    switch (kit::random_number() % 5) {
      case 0: {  // a node is replaced; the program that was goes on for a while
        const node_ref gone = all_.at(to);
        auto starts = start_node(to);
        co_await std::move(starts);
        for (const std::uint32_t each : all_.shards_of(gone->life)) {
          auto gives = take_over(each, kit::random_number() % nodes_count);
          co_await std::move(gives);
        }
        stale_.push_back(gone);
        break;
      }
      case 1: {  // the lease ends, and the one that had it knows it late, or never
        auto gives = take_over(shard, to);
        co_await std::move(gives);
        co_await sleep_for(up_to(5'000));
        if (!one_in(3) && from != nullptr && from != all_.owner_of(shard))
          from->runs->lost(one_number(shard));
        break;
      }
      case 2: {
        auto disturbs = blocking([this] { table_.disturb(); });
        co_await std::move(disturbs);
        break;
      }
      default: {
        if (from == nullptr) co_return;
        auto drains = drain(from, all_.held(shard));
        co_await std::move(drains);
        auto gives = take_over(shard, to);
        co_await std::move(gives);
      }
    }
  }
  static task<> drain(node_ref from, held_shard which) {
    const auto until = troupe::now() + 200ms;
    while (from->runs->hand_over({which}, true).empty()) {
      if (troupe::now() < until) {
        co_await sleep_for(2ms);
        continue;
      }
      from->runs->lost(one_number(which.shard));
      break;
    }
  }

  // As a client does that does not know whether it was heard, each time at another node.
  template <auto Method, class... Args>
  task<> until_acknowledged(std::string to, std::string id, Args... args) {
    for (bool acknowledged = false; !acknowledged;) {
      try {
        const node_ref by = all_.at(kit::random_number() % nodes_count);
        auto asked = ask<Method>(by, to, id, args...).timeout(500ms);
        co_await std::move(asked);
        acknowledged = true;
      } catch (const error&) {
      }
      if (!acknowledged) co_await sleep_for(up_to(5'000));
    }
  }

  task<> sends(int client) {
    auto& made = transfers_[static_cast<std::size_t>(client)];
    for (int i = 0; !stops_; ++i) {
      const std::string transfer = std::to_string(client) + "." + std::to_string(i);
      // Accounts ask those with smaller numbers alone, so that no asks wait for each other.
      const std::uint64_t from = kit::random_number() % 3;
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
          made.push_back(transfer + "'");
        }
      }
      made.push_back(transfer);
      ++acknowledged_;
    }
  }

  task<Account> look(std::string key) {
    for (;;) {
      try {
        stored_message what;
        what.from = durable::origin::ask;
        what.id = durable::message_id::random();
        what.to.kind = "Account";
        what.to.key = key;
        const auto of = durable::parts::entry_of<&Account::all>();
        what.method = of.name;
        what.signature = of.signature;
        auto asked = forward_over(all_, faults_, std::move(what));
        const durable::bytes found = co_await std::move(asked);
        co_return durable::decode<Account>(found);
      } catch (const error&) {
      }
      co_await sleep_for(1ms);
    }
  }

  task<> check() {
    while (table_.sql("SELECT count(*) FROM durable_inbox") != "0") co_await sleep_for(20ms);
    std::int64_t sum = 0;
    std::map<std::string, int> paid, got;
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto looks = look(name(i));
      const Account one = co_await std::move(looks);
      sum += one.cents;
      for (const auto& [transfer, times] : one.paid) paid[transfer] += times;
      for (const auto& [transfer, times] : one.got) got[transfer] += times;
    }
    EXPECT_EQ(sum, static_cast<std::int64_t>(accounts_count) * opening);
    std::size_t expected = 0;
    for (const auto& of_client : transfers_) {
      expected += of_client.size();
      for (const std::string& transfer : of_client) {
        EXPECT_EQ(paid[transfer], 1) << transfer;
        EXPECT_EQ(got[transfer], 1) << transfer;
      }
    }
    EXPECT_EQ(paid.size(), expected);
    EXPECT_EQ(got.size(), expected);
    EXPECT_EQ(table_.sql("SELECT count(*) FROM durable_dead"), "0");
    std::cout << expected << " transfers, " << lives_ << " lives\n";
  }

  runtime& rt_;
  const shards_table& table_;
  directory all_;
  std::vector<node_ref> stale_;
  int lives_ = 0;
  std::atomic<bool> faults_{false}, stops_{false};
  std::atomic<int> acknowledged_{0};
  std::vector<std::string> transfers_[3];
};

void move_shards(const shards_table& table) {
  runtime rt({.workers = 2});
  auto bank = std::make_unique<bank_of_nodes>(rt, table);
  const int changes = std::getenv("TROUPE_DEEP") != nullptr ? 1'000 : fewer(60);
  future<> done = rt.spawn(bank->run(changes));
  rt.run();
  done.get();
}

TEST(durable_moving_shards, each_transfer_has_its_effect_once_whoever_has_the_shards) {
  if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
  move_shards(postgres_shards_table(make_schema()));
}
TEST(durable_moving_shards, each_transfer_has_its_effect_once_in_a_shared_sqlite_file) {
  move_shards(sqlite_shards_table());
}

}  // namespace
}  // namespace troupe::test
