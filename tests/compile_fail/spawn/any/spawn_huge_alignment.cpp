// The class needs a larger alignment than an actor can have.
// expect: troupe: spawn: an actor's alignment is at most 2048 bytes
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

#ifdef CONTROL
struct alignas(2048) page {};
#else
struct alignas(4096) page {};
#endif

void use(troupe::runtime& rt) { static_cast<void>(rt.spawn<page>()); }
