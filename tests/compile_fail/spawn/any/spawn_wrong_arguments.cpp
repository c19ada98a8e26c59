// No constructor of the actor takes these arguments.
// expect: troupe: spawn: these arguments do not fit a constructor of the actor
#include <string>
#include <troupe/troupe.hpp>

struct Account {
  explicit Account(int start) : balance(start) {}
  int balance;
};

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.spawn<Account>(100);
#else
  rt.spawn<Account>(std::string("hundred"));
#endif
}
