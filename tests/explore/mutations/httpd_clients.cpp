// The chat of examples/httpd.cpp with two guests. The first line that a guest hears is its own
// arrival, under a number that no other guest has.
#define main httpd_main
#include "httpd.cpp"
#undef main
#include "troupe/http/client.hpp"

namespace {

http::router chat_routes(troupe::ref<Room> room) {
  http::router routes;
  routes.get("/chat", [room](const http::request& asked) {
    if (!asked.head().wants_upgrade) return http::response::html(chat_page);
    return http::response::websocket([room](http::websocket& peer) { return chat(peer, room); },
                                     http::websocket_options());
  });
  return routes;
}

troupe::task<std::string> visit(http::client web, std::string at) {
  const auto peer = co_await web.websocket(at);
  const auto heard = co_await peer->receive();
  std::string line = heard ? std::string(heard->data) : std::string();
  co_await peer->close();
  co_return line;
}

// The other guest is usually there.
troupe::task<std::string> visit_later(http::client web, std::string at) {
  for (int i = 0; i < 20; ++i) co_await troupe::yield();
  co_return co_await visit(web, at);
}

// The first line that each guest hears.
using Lines = std::pair<std::string, std::string>;

troupe::task<Lines> meet(http::server server) {
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const std::string at = "http://" + listener.local().to_string() + "/chat";
  auto serves = troupe::spawn(server.serve(std::move(listener)));
  const http::client web;
  auto first = troupe::spawn(visit(web, at)), second = troupe::spawn(visit_later(web, at));
  std::string first_line = co_await std::move(first);
  std::string second_line = co_await std::move(second);
  server.stop();
  co_await std::move(serves);
  co_return Lines(std::move(first_line), std::move(second_line));
}

}  // namespace

int main() {
  troupe::runtime rt;
  auto met = rt.spawn(meet(http::server(chat_routes(rt.spawn<Room>()))));
  rt.run();
  const auto [first, second] = met.get();
  troupe::expect(first.ends_with(" is here") && second.ends_with(" is here") && first != second);
}
