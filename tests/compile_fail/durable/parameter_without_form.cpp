// A message whose parameter cannot be stored.
// expect: troupe: durable: this parameter cannot be stored
#include <troupe/durable/store.hpp>

#include <memory>

struct account {
  int cents = 0;
#ifdef CONTROL
  void pay(int amount) { cents += amount; }
#else
  void pay(std::unique_ptr<int> amount) { cents += *amount; }
#endif
};

const auto accounts = troupe::durable::kind<account, &account::pay>();
