#include "service.hpp"

bool Stock::take() {
  if (items == 0) return false;
  --items;
  return true;
}

troupe::task<int> buy_all(troupe::ref<Stock> stock) {
  int bought = 0;
  for (;;) {
    const bool got = co_await stock.ask<&Stock::take>();
    if (!got) co_return bought;
    ++bought;
  }
}
