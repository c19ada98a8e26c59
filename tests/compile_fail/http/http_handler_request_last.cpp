// A handler of HTTP that takes the request behind the path's parameters.
// expect: troupe: an HTTP handler takes the request first, and once, and the path's parameters behind it
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/{name}", [](const request&, std::string name) { return response::text(name); });
#else
  routes.get("/{name}", [](std::string name, const request&) { return response::text(name); });
#endif
}
