#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "service.hpp"

namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Puts an item into Alice's cart, and serves the other nodes until a signal comes.
troupe::task<> serve(troupe::cluster::node node, std::string item,
                     troupe::signal_listener signals) {
  co_await node.ready();
  const std::size_t count = co_await node.get<Cart>("alice").ask<&Cart::add>(item);
  std::cout << "Alice's cart has " << count << " items" << std::endl;
  co_await signals.next();
  co_await node.stop();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string item = argc > 1 ? argv[1] : "pen";
  troupe::runtime rt;
  // Not weak: a node that is alone waits for a signal, too.
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM}, {.weak = false});
  auto node = make_node(rt, environment("SHOP_NATS"), environment("SHOP_DATABASE"));
  rt.spawn(serve(std::move(node), item, std::move(signals)));
  rt.run();
} catch (const std::exception& failed) {
  std::cerr << argv[0] << ": " << failed.what() << '\n';
  return 1;
}
