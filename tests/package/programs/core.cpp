// A program as the guide's readers write them: actors and a connection, with troupe.hpp alone.
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <troupe/troupe.hpp>
#include <utility>

struct counter {
  void add(int n) { total += n; }
  int value() { return total; }
  int total = 0;
};

troupe::task<> serve(troupe::tcp_listener listener, troupe::ref<counter> count) {
  troupe::tcp_stream peer = co_await listener.accept();
  std::array<char, 2> text;
  co_await peer.read_exact(text);
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  count.tell<&counter::add>(number);
  std::printf("%d\n", co_await count.ask<&counter::value>());
}

int main() {
  troupe::runtime rt;
  auto count = rt.spawn<counter>();
  count.tell<&counter::add>(2);
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  auto ask = [](troupe::endpoint server) -> troupe::task<> {
    troupe::tcp_stream peer = co_await troupe::tcp_stream::connect(server);
    co_await peer.write_all(std::string_view("40"));
  };
  rt.spawn(ask(listener.local()));
  rt.spawn(serve(std::move(listener), count));
  rt.run();
}
