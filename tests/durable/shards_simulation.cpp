// Durable actors of several nodes on one database, under seeds: shards move in good order, are lost
// without a word, and go on being believed by nodes that do not have them any more; nodes are
// killed; messages between them are late, doubled and lost; the database refuses, and loses the
// answers of commits. Money is conserved, and each acknowledged transfer has its effect once.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/engine/engine.hpp"
#include "durable/transfers.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"

namespace troupe::test {
namespace {

using durable::held_shard;
using durable::stored_message;
using durable::parts::engine;
using transfers::Account;
using transfers::accounts;
using namespace std::chrono_literals;

constexpr std::uint32_t shards_used = 4;
constexpr std::size_t nodes_count = 3;
constexpr std::uint64_t accounts_count = 6;
constexpr std::int64_t opening = 1'000;

enum class mistake : std::uint8_t { none, no_fence, no_dedupe };

bool one_in(std::uint64_t many) { return kit::random_number() % many == 0; }
std::chrono::microseconds up_to(std::uint64_t us) {
  return std::chrono::microseconds(kit::random_number() % us);
}

class no_answer : public error {
  using error::error;
};

class small_cluster {
 public:
  small_cluster(runtime& rt, mistake made) : rt_(rt), made_(made) {}

  // Returns what is wrong at the end; "" for nothing.
  task<std::string> run() {
    for (std::size_t i = 0; i < nodes_count; ++i) {
      auto starts = start_node(i);
      co_await std::move(starts);
    }
    for (std::uint32_t shard = 0; shard < shards_used; ++shard) give(shard, shard % nodes_count);
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto opens = until_acknowledged<&Account::open>(name(i), "open", opening);
      co_await std::move(opens);
    }
    faults_ = true;
    db_.set_faults({.refuses = 40, .loses = 25, .delay_max = 200us});
    std::vector<future<>> clients;
    for (int client = 0; client < 3; ++client) clients.push_back(rt_.spawn(sends(client)));
    for (int change = 0; change < 12; ++change) {
      co_await sleep_for(200us + up_to(2'000));
      auto changes = change_something();
      co_await std::move(changes);
    }
    for (auto& one : clients) co_await std::move(one);
    faults_ = false;
    db_.set_faults({});
    auto checks = check();
    co_return co_await std::move(checks);
  }

 private:
  struct lease {
    std::uint64_t owner = 0;  // the life of a node; 0: nobody
    std::uint64_t fence = 0;
  };
  // One life of a node.
  struct node {
    std::uint64_t life = 0;
    bool is_reachable = true;
    std::shared_ptr<engine> runs;
  };
  using node_ref = std::shared_ptr<node>;

  class scope final : public durable::parts::shard_scope {
   public:
    scope(small_cluster& of, std::uint64_t life) : of_(of), life_(life) {}
    std::uint32_t shard_of(std::string_view, std::string_view key) const noexcept override {
      return static_cast<std::uint32_t>(key.back()) % shards_used;
    }
    bool acts_for(const held_shard& one) const noexcept override { return of_.owns(life_, one); }
    task<durable::bytes> forward(stored_message what) override {
      return of_.forward(std::move(what));
    }
    task<bool> waits_for(durable::parts::cycle_question what) override {
      const node_ref at = of_.owner_of(shard_of("", what.to.key));
      if (at == nullptr) throw usage_error("nobody has it");
      return engine::waits_for(at->runs, std::move(what));
    }

   private:
    small_cluster& of_;
    const std::uint64_t life_;
  };

  static std::string name(std::uint64_t number) { return "account " + std::to_string(number); }
  static std::uint32_t shard_of(const std::string& key) {
    return static_cast<std::uint32_t>(key.back()) % shards_used;
  }
  bool owns(std::uint64_t life, const held_shard& one) const {
    const lease& now = leases_[one.shard];
    return now.owner == life && now.fence == one.fence;
  }

  task<> start_node(std::size_t at) {
    auto made = std::make_shared<node>();
    made->life = ++lives_;
    durable::options chosen;
    chosen.actors_max = 3;
    chosen.retry_first = 1ms;
    chosen.away_first = 1ms;
    while (made->runs == nullptr) {
      auto is_mine = [this, life = made->life](const held_shard& one) {
        return made_ == mistake::no_fence || owns(life, one);
      };
      auto tried = std::make_shared<engine>(rt_, db_.storage_of_node(is_mine), chosen,
                                            std::vector{accounts()},
                                            std::make_shared<scope>(*this, made->life));
      try {
        auto opens = tried->open();
        co_await std::move(opens);
        made->runs = std::move(tried);
      } catch (const database::error&) {
      }
    }
    nodes_[at] = std::move(made);
  }

  void give(std::uint32_t shard, std::size_t to) {
    lease& now = leases_[shard];
    now.owner = nodes_[to]->life;
    ++now.fence;
    nodes_[to]->runs->gained({{shard, now.fence}});
  }
  node_ref owner_of(std::uint32_t shard) const {
    for (const node_ref& one : nodes_) {
      if (one != nullptr && one->life == leases_[shard].owner) return one;
    }
    return nullptr;
  }

  // As a network does, and the nodes at its ends.
  task<durable::bytes> forward(stored_message what) {
    co_await sleep_for(up_to(200));
    if (faults_ && one_in(12)) throw no_answer("it did not go");
    const std::uint32_t shard = shard_of(what.to.key);
    const node_ref to = owner_of(shard);
    if (to == nullptr) throw no_answer("nobody has it");
    if (faults_ && what.named && one_in(8)) rt_.spawn(send_late(what));
    stored_message copy = made_ == mistake::no_dedupe ? with_other_id(what) : what;
    auto delivers = to->runs->deliver(std::move(copy));
    durable::bytes got = co_await std::move(delivers);
    if (!to->is_reachable || (faults_ && one_in(12))) throw no_answer("its answer was lost");
    co_await sleep_for(up_to(200));
    co_return got;
  }
  // A mistake: what is sent once more is taken for another message.
  static stored_message with_other_id(stored_message what) {
    what.id = durable::message_id::random();
    return what;
  }
  task<> send_late(stored_message what) {
    co_await sleep_for(up_to(3'000));
    const node_ref to = owner_of(shard_of(what.to.key));
    if (to == nullptr) co_return;
    auto delivers = to->runs->deliver(std::move(what));
    try {
      co_await std::move(delivers);
    } catch (const error&) {
    }
  }

  task<> change_something() {
    const auto shard = static_cast<std::uint32_t>(kit::random_number() % shards_used);
    const std::size_t to = kit::random_number() % nodes_count;
    const node_ref from = owner_of(shard);
    switch (kit::random_number() % 4) {
      case 0: {  // a node is killed; the program that was goes on for a while
        const node_ref gone = nodes_[to];
        gone->is_reachable = false;
        auto starts = start_node(to);
        co_await std::move(starts);
        for (std::uint32_t each = 0; each < shards_used; ++each) {
          if (leases_[each].owner == gone->life) give(each, kit::random_number() % nodes_count);
        }
        zombies_.push_back(gone);
        break;
      }
      case 1: {  // the lease ends, and the one that had it knows it late
        give(shard, to);
        co_await sleep_for(up_to(2'000));
        if (from != nullptr && !one_in(3) && from->life != leases_[shard].owner)
          from->runs->lost({shard});
        break;
      }
      default: {
        if (from == nullptr) co_return;
        const std::vector<held_shard> what{{shard, leases_[shard].fence}};
        const int open_looks = one_in(2) ? 0 : 10;  // looks before it is closed
        bool is_drained = false;
        for (int looks = 0; looks < 20 && !is_drained; ++looks) {
          is_drained = !from->runs->hand_over(what, looks >= open_looks).empty();
          if (!is_drained) co_await sleep_for(1ms);
        }
        drained_ += is_drained;
        if (!is_drained) from->runs->lost({shard});
        leases_[shard].owner = 0;
        ++leases_[shard].fence;
        co_await sleep_for(up_to(300));
        give(shard, to);
      }
    }
  }

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
  class ignored_answer final : public durable::parts::answer_to {
   public:
    future<> get_future() { return to_.get_future(); }
    void give(std::span<const std::byte>) noexcept override { to_.set_value(); }
    void fail(const std::exception_ptr& why) noexcept override { to_.set_exception(why); }

   private:
    promise<> to_;
  };

  // As a client does that does not know whether it was heard, each time at another node.
  template <auto Method, class... Args>
  task<> until_acknowledged(std::string to, std::string id, Args... args) {
    for (int tries = 0; tries < 3'000; ++tries) {
      bool acknowledged = false;
      try {
        const node_ref by = nodes_[kit::random_number() % nodes_count];
        auto asked = ask<Method>(by, to, id, args...).timeout(10ms);
        co_await std::move(asked);
        acknowledged = true;
      } catch (const error& e) {
        last_error_ = e.what();
      }
      if (acknowledged) co_return;
      co_await sleep_for(up_to(1'000));
    }
    stuck_ += id + " to " + to + ": " + last_error_ + "; ";
  }

  task<> sends(int client) {
    for (int i = 0; i < 6; ++i) {
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
          expected_.push_back(transfer + "'");
        }
      }
      expected_.push_back(transfer);
    }
  }

  task<Account> look(std::string key) {
    for (int tries = 0; tries < 1'000; ++tries) {
      try {
        stored_message what;
        what.from = durable::origin::ask;
        what.id = durable::message_id::random();
        what.to = {"Account", key};
        const auto of = durable::parts::entry_of<&Account::all>();
        what.method = of.name;
        what.signature = of.signature;
        auto asked = forward(std::move(what));
        const durable::bytes found = co_await std::move(asked);
        co_return durable::decode<Account>(found);
      } catch (const error&) {
      }
      co_await sleep_for(1ms);
    }
    stuck_ += "look " + key + "; ";
    co_return Account();
  }

  task<std::string> check() {
    // What still waits in the inbox is handled; after faults stores wait for up to 10 s.
    for (int round = 0; round < 2'000 && db_.dump().find("inbox ") != std::string::npos; ++round)
      co_await sleep_for(round < 1'000 ? 5ms : 1s);
    std::int64_t sum = 0;
    std::map<std::string, int> paid, got;
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto looks = look(name(i));
      const Account one = co_await std::move(looks);
      sum += one.cents;
      for (const auto& [transfer, times] : one.paid) paid[transfer] += times;
      for (const auto& [transfer, times] : one.got) got[transfer] += times;
    }
    std::string wrong = stuck_.empty() ? "" : "never acknowledged: " + stuck_;
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
  std::array<lease, shards_used> leases_;
  std::array<node_ref, nodes_count> nodes_;
  std::vector<node_ref> zombies_;
  std::uint64_t lives_ = 0;
  int drained_ = 0;
  bool faults_ = false;
  std::string stuck_, last_error_;
  std::vector<std::string> expected_;
};

std::string what_is_wrong(std::uint64_t seed, mistake made) {
  runtime rt({.policy = policy::simulated, .seed = seed});
  small_cluster nodes(rt, made);
  future<std::string> result = rt.spawn(nodes.run());
  rt.run();
  return result.get();
}

TEST(durable_shards, each_transfer_has_its_effect_once_whoever_has_the_shards) {
  for_each_seed(chosen_seeds(slow ? 40 : 200),
                [](std::uint64_t seed) { EXPECT_EQ(what_is_wrong(seed, mistake::none), ""); });
}

void expect_found(mistake made) {
  test::expect_found([made](std::uint64_t seed) { return what_is_wrong(seed, made); });
}
TEST(durable_shards, a_store_without_the_fence_is_found) { expect_found(mistake::no_fence); }
TEST(durable_shards, a_store_without_the_dedupe_is_found) { expect_found(mistake::no_dedupe); }

}  // namespace
}  // namespace troupe::test
