// A handler of HTTP whose parameter has no type: the type to which a path's parameter must be
// converted is unknown.
// expect: troupe: an HTTP handler is a function, or an object with one operator() whose parameters have types
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/", [](const request& asked) { return response::text(std::string(asked.path())); });
#else
  routes.get("/", [](const auto& asked) { return response::text(std::string(asked.path())); });
#endif
}
