// A program with a mistake of the kind that its argument names; `none` is right.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "troupe/troupe.hpp"

namespace {

struct Clerk;

struct Stock {
  std::string mistake;
  int items = 0, deliveries = 0;
  void read(troupe::ref<Clerk> clerk);
  void write(int now) {
    items = now;
    ++deliveries;
    if (deliveries != 2 || items == 2 || mistake == "none") return;
    // an update was lost
    if (mistake == "crash") std::abort();
    if (mistake == "status") ::_exit(3);
    if (mistake == "hang") ::pause();
    troupe::expect(mistake != "expect");
  }
};

struct Clerk {
  troupe::ref<Stock> stock;
  void deliver() { stock.tell<&Stock::read>(troupe::self(this)); }
  void got(int items) { stock.tell<&Stock::write>(items + 1); }
};

void Stock::read(troupe::ref<Clerk> clerk) { clerk.tell<&Clerk::got>(items); }

}  // namespace

int main(int argc, char** argv) {
  const std::string mistake = argc > 1 ? argv[1] : "none";
  if (mistake == "idle") return 0;
  troupe::runtime rt;
  auto stock = rt.spawn<Stock>(mistake);
  rt.spawn<Clerk>(stock).tell<&Clerk::deliver>();
  auto later = rt.spawn<Clerk>(stock);
  rt.spawn(
      [](troupe::ref<Clerk> clerk) -> troupe::task<> {
        for (int i = 0; i < 4; ++i) co_await troupe::yield();
        clerk.tell<&Clerk::deliver>();
      },
      later);
  rt.run();
}
