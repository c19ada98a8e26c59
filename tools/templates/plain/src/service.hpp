// service: a stock, and the customers who buy from it.
#pragma once

#include <troupe/actors.hpp>

// An actor: other actors and tasks send it messages, and it handles one at a time. It needs no
// lock.
struct Stock {
  int items = 0;

  // Whether an item was left.
  bool take();
};

// Buys one item after the other until none is left, and returns their number.
troupe::task<int> buy_all(troupe::ref<Stock> stock);
