#include <csignal>
#include <exception>
#include <iostream>
#include <troupe/http.hpp>
#include <troupe/troupe.hpp>
#include <utility>

#include "service.hpp"

namespace http = troupe::http;

// The requests that have begun are answered before the server ends.
troupe::task<> stop_by_signal(troupe::signal_listener signals, http::server web) {
  co_await signals.next();
  web.stop();
}

int main(int argc, char** argv) try {
  const char* const address = argc > 1 ? argv[1] : "127.0.0.1:8080";
  troupe::runtime rt;
  http::server web(make_routes(rt.spawn<Visits>()));
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::parse(address));
  std::cout << "http://" << listener.local().to_string() << "/hello/ada" << std::endl;
  rt.spawn(stop_by_signal(std::move(signals), web));
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
} catch (const std::exception& failed) {
  std::cerr << argv[0] << ": " << failed.what() << '\n';
  return 1;
}
