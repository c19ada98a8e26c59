// The callable takes an object of another class.
// expect: troupe: tell: the callable must be callable with (T&)
#include <string>

#include "troupe/troupe.hpp"

struct account {
  explicit account(int balance) : balance(balance) {}
  void deposit(int amount, std::string note) { balance += static_cast<int>(note.size()) + amount; }
  int balance;
};
struct stranger {
  void greet() {}
};

void use(troupe::ref<account> to) {
#ifdef CONTROL
  to.tell([](account& self) { self.balance = 0; });
#else
  to.tell([](stranger& other) { other.greet(); });
#endif
}
