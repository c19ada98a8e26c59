// A handler of HTTP that takes a path's parameter as a reference that it could write to.
// expect: troupe: an HTTP handler takes a path's parameter by value or as a const reference
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/{id}", [](const std::string& id) { return response::text(id); });
#else
  routes.get("/{id}", [](std::string& id) { return response::text(id += "!"); });
#endif
}
