// simulated_storage: a database in memory for tests, whose failures a seed determines.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "troupe/base/time_span.hpp"
#include "troupe/durable/storage.hpp"

namespace troupe::durable {

// How often the simulated database fails. Each number is one in so many calls; 0 is never.
struct simulated_faults {
  std::uint64_t refuses = 0;  // the call fails and changes nothing
  std::uint64_t loses = 0;    // a commit is stored, or not, and its answer is lost
  // Each call takes a random time up to this one.
  time_span delay_max{};
};

// A database that several stores open one after the other, as programs that are killed and started
// again do: opening it takes it from the store before. Copies are the same database. For programs
// under the simulated policy, whose seed decides about faults and delays.
//
// Thread: any. Lifetime: the data lives as long as any copy or any storage.
//
// Example (declarations):
//     #include <troupe/durable/store.hpp>
//     struct Account {
//       std::int64_t cents = 0;
//       std::int64_t deposit(std::int64_t amount) { return cents += amount; }
//     };
//     troupe::task<> twice(troupe::runtime& rt) {
//       troupe::durable::simulated_database db;
//       for (int life = 1; life <= 2; ++life) {
//         auto store = co_await troupe::durable::store::open(
//             rt, db.storage(), troupe::durable::kind<Account, &Account::deposit>());
//         std::cout << co_await store.get<Account>("a").ask<&Account::deposit>(5) << '\n';
//       }  // 5, 10
//     }
class simulated_database {
 public:
  simulated_database();

  std::unique_ptr<durable::storage> storage() const;
  // For one node of a cluster: several may be open at the same time. `is_mine` returns, within each
  // commit, whether the node still owns the shard with that fence. `node` is its name for
  // set_cut_off().
  std::unique_ptr<durable::storage> storage_of_node(std::function<bool(const held_shard&)> is_mine,
                                                    std::string node = {}) const;
  // From now on.
  void set_faults(const simulated_faults& now);
  // While it is unavailable, all calls fail.
  void set_away(bool away);
  // While a node is cut off, all of its calls fail.
  void set_cut_off(const std::string& node, bool cut_off);
  // All that is stored, as text: one line for each row.
  std::string dump() const;

  struct tables;

 private:
  std::shared_ptr<tables> tables_;
};

}  // namespace troupe::durable
