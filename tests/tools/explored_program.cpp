// A program with a mistake of the kind that its argument names; `none` is right. `network` is right
// as long as no connection is cut.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
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

troupe::task<> serve(troupe::tcp_listener listener, std::shared_ptr<int> added) {
  std::array<char, 1> byte{};
  for (;;) {
    troupe::tcp_stream peer = co_await listener.accept();
    try {
      if (co_await peer.read(byte).timeout(std::chrono::minutes(1)) == 0) continue;
      ++*added;
      co_await peer.write_all("k");
    } catch (const troupe::error&) {  // the client comes again
    }
  }
}

// Sends its request again when the connection was cut, though the server may have handled it.
troupe::task<> add(troupe::endpoint server) {
  std::array<char, 1> answer{};
  for (int i = 0; i < 2; ++i) {
    try {
      troupe::tcp_stream peer = co_await troupe::tcp_stream::connect(server);
      co_await peer.write_all("a");
      co_await peer.read_exact(answer).timeout(std::chrono::seconds(1));
      co_return;
    } catch (const troupe::io_error&) {
      continue;
    } catch (const troupe::error&) {
      co_return;
    }
  }
}

troupe::task<> add_once(troupe::runtime& rt, std::shared_ptr<int> added) {
  troupe::tcp_listener listener =
      troupe::tcp_listener::listen(troupe::endpoint::loopback(0), {.weak = true});
  const troupe::endpoint server = listener.local();
  rt.spawn(serve(std::move(listener), added));
  co_await add(server);
}

int use_the_network() {
  troupe::runtime rt;
  auto added = std::make_shared<int>(0);
  rt.spawn(add_once(rt, added));
  rt.run();
  return *added <= 1 ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mistake = argc > 1 ? argv[1] : "none";
  if (mistake == "idle") return 0;
  if (mistake == "network") return use_the_network();
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
