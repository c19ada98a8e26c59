// chargen: sends lines of text to each client for as long as it reads (RFC 864).
//
// chargen [PORT]: listens on 127.0.0.1, at a port of the system's choice if none is given, and
// prints the port. SIGINT or SIGTERM ends it.
//
// The server is a protocol class. A connection costs as much memory after ten gigabytes as after
// the first line.
#include <charconv>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <stop_token>
#include <string>
#include <string_view>

#include "troupe/troupe.hpp"

// The text that send_complete returns is sent, and then send_complete is called again. The text
// lies in the connection's context, which the library rolls back in between.
struct Chargen {
  static constexpr int first = ' ', count = 95, width = 72;

  std::string_view connection_made() { return lines(); }
  std::string_view send_complete() { return lines(); }
  void data_received(std::string_view) {}  // input is ignored, as the RFC demands

  // Each line begins one character further than the line before. After 95 lines the beginning has
  // come round again.
  static std::string_view lines() {
    constexpr std::size_t bytes = std::size_t{count} * (width + 2);
    char* const text = static_cast<char*>(troupe::this_context().allocate(bytes, 1));
    char* to = text;
    for (int line = 0; line < count; ++line) {
      for (int column = 0; column < width; ++column)
        *to++ = static_cast<char>(first + (line + column) % count);
      *to++ = '\r';
      *to++ = '\n';
    }
    return {text, bytes};
  }
};

troupe::task<> stop_by_signal(std::stop_source end, troupe::runtime& rt) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  co_await signals.next();
  end.request_stop();  // no more connections
  rt.stop();           // otherwise the connections would never end
}

bool read_port(std::string_view text, std::uint16_t& port) {
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), port);
  return bad == std::errc{} && rest == text.data() + text.size();
}

int main(int argc, char** argv) {
  std::uint16_t port = 0;
  if (argc > 2 || (argc == 2 && !read_port(argv[1], port))) {
    std::cerr << "usage: chargen [PORT]\n";
    return 2;
  }
  troupe::runtime rt;
  try {
    auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(port));
    std::cout << "listening on " << listener.local().to_string() << std::endl;
    std::stop_source end;
    troupe::protocol_options options;
    options.stop = end.get_token();
    rt.spawn(stop_by_signal(end, rt));
    rt.spawn(troupe::serve_protocol<Chargen>(std::move(listener), options));
    rt.run();
  } catch (const troupe::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
