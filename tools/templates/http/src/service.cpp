#include "service.hpp"

#include <utility>

namespace http = troupe::http;

int Visits::add(const std::string& name) { return ++counts[name]; }

http::router make_routes(troupe::ref<Visits> visits) {
  http::router routes;
  routes.get("/hello/{name}", [visits](std::string name) -> troupe::task<http::response> {
    const int count = co_await visits.ask<&Visits::add>(name);
    co_return http::response::text("hello " + name + ", visit " + std::to_string(count) + "\n");
  });
  return routes;
}
