// echo: sends back what a client sends, with a task for each connection.
//
// echo [PORT]: listens on 127.0.0.1, at a port of the system's choice if none is given, and prints
// the port. It ends when a client sends "quit".
#include <array>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string_view>

#include "troupe/troupe.hpp"

troupe::task<> talk(troupe::runtime& rt, troupe::tcp_stream& peer) {
  std::array<char, 4096> buffer;
  for (;;) {
    const std::size_t bytes = co_await peer.read(buffer).timeout(std::chrono::minutes(5));
    if (bytes == 0) co_return;
    const std::string_view said(buffer.data(), bytes);
    co_await peer.write_all(said);
    if (said.starts_with("quit")) rt.stop();
  }
}

// A failure of one connection does not affect the others.
troupe::task<> echo(troupe::runtime& rt, troupe::tcp_stream peer) {
  try {
    co_await talk(rt, peer);
  } catch (const troupe::io_error& e) {
    std::cerr << e.what() << '\n';
  } catch (const troupe::timed_out& e) {
    std::cerr << e.what() << '\n';
  }
}

troupe::task<> serve(troupe::runtime& rt, troupe::tcp_listener listener) {
  for (;;) {
    troupe::tcp_stream peer = co_await listener.accept();
    rt.spawn(echo(rt, std::move(peer)));
  }
}

bool read_port(std::string_view text, std::uint16_t& port) {
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), port);
  return bad == std::errc{} && rest == text.data() + text.size();
}

int main(int argc, char** argv) {
  std::uint16_t port = 0;
  if (argc > 2 || (argc == 2 && !read_port(argv[1], port))) {
    std::cerr << "usage: echo [PORT]\n";
    return 2;
  }
  troupe::runtime rt;
  try {
    auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(port));
    std::cout << "listening on " << listener.local().to_string() << std::endl;
    rt.spawn(serve(rt, std::move(listener)));
    rt.run();
  } catch (const troupe::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
