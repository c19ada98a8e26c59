// The method must be the template argument.
// expect: troupe: tell: name the method as a template argument: tell<&T::method>(...)
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
  to.tell<&account::deposit>(1, "salary");
#else
  to.tell(&account::deposit, 1, "salary");
#endif
}
