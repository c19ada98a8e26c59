#include "service.hpp"

#include <stdexcept>
#include <utility>

namespace durable = troupe::durable;

std::int64_t Account::deposit(std::int64_t amount) { return cents += amount; }

std::int64_t Account::pay(durable::turn& turn, std::string receiver, std::int64_t amount) {
  if (amount > cents) throw std::runtime_error("not enough money");
  turn.post<&Account::deposit>(receiver, amount);
  return cents -= amount;
}

troupe::task<durable::store> open_accounts(troupe::runtime& rt, std::string file) {
  auto storage = durable::sqlite_storage(rt, std::move(file));
  return durable::store::open(rt, std::move(storage),
                              durable::kind<Account, &Account::deposit, &Account::pay>());
}
