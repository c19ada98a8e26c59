// Accounts that transfer money in each way that durable actors have, for simulations: what one
// gains another loses, whatever happens between.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "kit/clock_and_random.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/task/timer.hpp"

// Not in an anonymous namespace: g++ 12 merges the tags of methods of such classes of several
// files.
namespace troupe::test::transfers {

using namespace std::chrono_literals;

struct Account {
  std::int64_t cents = 0;
  std::map<std::string, int> paid;
  std::map<std::string, int> got;

  void open(std::int64_t amount) { cents = amount; }
  void credit(std::string transfer, std::int64_t amount) {
    cents += amount;
    ++got[transfer];
  }
  std::int64_t debit(std::string transfer, std::int64_t amount) {
    cents -= amount;
    ++paid[transfer];
    return amount;
  }
  // One message goes out with this turn.
  void push(durable::turn& turn, std::string to, std::string transfer, std::int64_t amount) {
    debit(transfer, amount);
    turn.post<&Account::credit>(to, transfer, amount);
  }
  // The other one stores its part first.
  task<std::int64_t> pull(durable::turn& turn, std::string from, std::string transfer,
                          std::int64_t amount) {
    auto asked = turn.ask<&Account::debit>(from, transfer, amount);
    const std::int64_t taken = co_await std::move(asked);
    if (kit::random_number() % 2 == 0) co_await sleep_for(100us);
    credit(transfer, taken);
    co_return cents;
  }
  // Asks one that asks another one.
  task<std::int64_t> relay(durable::turn& turn, std::string over, std::string from,
                           std::string transfer, std::int64_t amount) {
    auto asked = turn.ask<&Account::pull>(over, from, transfer, amount);
    co_await std::move(asked);
    auto again = turn.ask<&Account::debit>(over, transfer + "'", amount);
    const std::int64_t taken = co_await std::move(again);
    credit(transfer + "'", taken);
    co_return cents;
  }
  Account all() const { return *this; }
};

inline auto accounts() {
  return durable::kind<Account, &Account::open, &Account::credit, &Account::debit, &Account::push,
                       &Account::pull, &Account::relay, &Account::all>();
}

}  // namespace troupe::test::transfers
