// A node of examples/shop.cpp with two customers and a supplier. What is left of an article is all
// that was delivered less all that was sold.
#define main shop_main
#include "shop.cpp"
#undef main

namespace {

constexpr std::int64_t delivery = 100;  // also of a cart whose article is sold out

troupe::task<std::size_t> order_one(cluster::node shop, std::string customer, int yields) {
  for (int i = 0; i < yields; ++i) co_await troupe::yield();
  const auto cart = shop.get<Cart>(customer);
  co_await cart.ask<&Cart::add>(std::string("bread"));
  co_return co_await cart.ask<&Cart::order>();
}

// Returns by how much the article's count is wrong.
troupe::task<std::int64_t> sell(troupe::runtime& rt) {
  cluster::options chosen;
  chosen.name = "shop";
  const cluster::node shop(rt, chosen, cluster::kind<Article, &Article::take, &Article::deliver>(),
                           cluster::kind<Cart, &Cart::add, &Cart::order>(),
                           cluster::exception<SoldOut>());
  co_await shop.ready();
  const auto stock = shop.get<Article>("bread");
  std::int64_t left = co_await stock.ask<&Article::take>(delivery - 1);
  auto first = troupe::spawn(order_one(shop, "first", 0));
  auto supplier = troupe::spawn([](cluster::ref<Article> bread) -> troupe::task<> {
    co_await bread.ask<&Article::deliver>(delivery);
  }(stock));
  auto second = troupe::spawn(order_one(shop, "second", 8));  // usually after the delivery
  const std::size_t sold = co_await std::move(first) + co_await std::move(second);
  co_await std::move(supplier);
  left += static_cast<std::int64_t>(3 - sold) * delivery - static_cast<std::int64_t>(sold);
  left -= co_await stock.ask<&Article::deliver>(0);
  co_await shop.stop();
  co_return left;
}

}  // namespace

int main() {
  troupe::runtime rt;
  auto wrong = rt.spawn(sell(rt));
  rt.run();
  troupe::expect(wrong.get() == 0);
}
