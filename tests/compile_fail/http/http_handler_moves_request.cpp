// A handler of HTTP that would move the request.
// expect: troupe: an HTTP handler takes the request as const troupe::http::request&
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/", [](request& asked) { return response::text(std::string(asked.path())); });
#else
  routes.get("/", [](request&& asked) { return response::text(std::string(asked.path())); });
#endif
}
