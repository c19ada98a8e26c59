#include "service.hpp"

#include <gtest/gtest.h>

#include "seeds.hpp"

TEST(Service, SellsEachItemOnce) {
  for_each_seed([](troupe::runtime& rt) {
    const auto stock = rt.spawn<Stock>(100);
    auto ada = rt.spawn(buy_all(stock));
    auto bob = rt.spawn(buy_all(stock));
    rt.run();
    EXPECT_EQ(ada.get() + bob.get(), 100);
  });
}
