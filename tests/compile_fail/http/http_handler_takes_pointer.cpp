// A handler of HTTP that takes a pointer to the request.
// expect: troupe: an HTTP handler takes the request as const troupe::http::request& or troupe::http::request&, not as a pointer
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/", [](const request& asked) { return response::text(std::string(asked.path())); });
#else
  routes.get("/", [](const request* asked) { return response::text(std::string(asked->path())); });
#endif
}
