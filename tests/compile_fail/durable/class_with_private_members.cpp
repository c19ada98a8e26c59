// A class of durable actors that is no aggregate.
// expect: troupe: durable: the class is stored by its members
#include <troupe/durable/store.hpp>

class account {
#ifdef CONTROL
 public:
#endif
  int cents = 0;

 public:
  void pay(int amount) { cents += amount; }
};

const auto accounts = troupe::durable::kind<account, &account::pay>();
