// The runtime aligns a message to 16 bytes. An argument that needs more must be behind a pointer.
// expect: troupe: over-aligned arguments cannot be sent by value
#include <memory>
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

struct alignas(64) line {};
struct taker {
  void take(line) {}
  void take_pointer(std::unique_ptr<line>) {}
};

void use(troupe::ref<taker> to) {
#ifdef CONTROL
  to.tell<&taker::take_pointer>(std::make_unique<line>());
#else
  to.tell<&taker::take>(line{});
#endif
}
