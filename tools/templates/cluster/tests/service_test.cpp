#include "service.hpp"

#include <gtest/gtest.h>

#include "seeds.hpp"

namespace {

troupe::task<> add_ten(troupe::cluster::node node, std::string key) {
  const auto cart = node.get<Cart>(key);
  for (int i = 0; i < 10; ++i) co_await cart.ask<&Cart::add>("item");
}

// Two customers fill one cart at a time, on a node that is alone.
troupe::task<> check_carts(troupe::runtime& rt, troupe::cluster::node node) {
  auto first = rt.spawn(add_ten(node, "alice"));
  auto second = rt.spawn(add_ten(node, "alice"));
  co_await std::move(first);
  co_await std::move(second);
  EXPECT_EQ(co_await node.get<Cart>("alice").ask<&Cart::add>("last"), 21u);
  EXPECT_EQ(co_await node.get<Cart>("bob").ask<&Cart::add>("first"), 1u);
  co_await node.stop();
}

}  // namespace

TEST(Service, LosesNoItem) {
  for_each_seed([](troupe::runtime& rt) {
    auto checked = rt.spawn(check_carts(rt, make_node(rt)));
    rt.run();
    checked.get();
  });
}
