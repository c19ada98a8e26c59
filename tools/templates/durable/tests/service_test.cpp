#include "service.hpp"

#include <gtest/gtest.h>

#include "seeds.hpp"

namespace durable = troupe::durable;

namespace {

troupe::task<bool> pays(durable::ref<Account> payer, std::string receiver, std::int64_t cents) {
  try {
    co_await payer.ask<&Account::pay>(receiver, cents);
  } catch (const durable::handler_failed&) {
    co_return false;
  }
  co_return true;
}

// Two payments at a time, for which the money does not suffice.
troupe::task<> check_payments(troupe::runtime& rt) {
  const durable::store accounts = co_await open_accounts(rt, ":memory:");
  const auto alice = accounts.get<Account>("alice");
  const auto bob = accounts.get<Account>("bob");
  co_await alice.ask<&Account::deposit>(100);
  auto first = rt.spawn(pays(alice, "bob", 60));
  auto second = rt.spawn(pays(alice, "bob", 60));
  const bool first_paid = co_await std::move(first);
  const bool second_paid = co_await std::move(second);
  EXPECT_NE(first_paid, second_paid);
  EXPECT_EQ(co_await alice.ask<&Account::deposit>(0), 40);
  co_await troupe::sleep_for(std::chrono::seconds(1));  // virtual time: the payment has arrived
  EXPECT_EQ(co_await bob.ask<&Account::deposit>(0), 60);
}

}  // namespace

TEST(Service, PaysNoMoreThanThereIs) {
  for_each_seed([](troupe::runtime& rt) {
    auto checked = rt.spawn(check_payments(rt));
    rt.run();
    checked.get();
  });
}
