// An actor is an object of a class.
// expect: troupe: spawn: an actor is an object of a class
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

void use(troupe::runtime& rt) {
#ifdef CONTROL
  static_cast<void>(rt.spawn<account>(5));
#else
  static_cast<void>(rt.spawn<int>(5));
#endif
}
