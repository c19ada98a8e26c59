// A server and a client of HTTP in one program.
#include <cstdio>
#include <string>
#include <troupe/http/client.hpp>
#include <troupe/http/server.hpp>
#include <troupe/troupe.hpp>
#include <utility>

namespace http = troupe::http;

troupe::task<> ask(http::server web, std::string url) {
  http::client client;
  http::client_response answer = co_await client.get(url);
  const std::string body = co_await answer.read_all();
  std::printf("%s\n", body.c_str());
  web.stop();
}

int main() {
  http::router routes;
  routes.get("/numbers/{n}", [](const http::request&, int n) {
    return http::response::text(std::to_string(n + 2));
  });
  http::server web(std::move(routes));
  troupe::runtime rt;
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  rt.spawn(ask(web, "http://127.0.0.1:" + std::to_string(listener.local().port()) + "/numbers/40"));
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
}
