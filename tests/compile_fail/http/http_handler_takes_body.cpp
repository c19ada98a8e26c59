// A handler of HTTP with a parameter that no path has: the body is the request's.
// expect: troupe: an HTTP handler's parameters after the request are the path's
#include <troupe/http/router.hpp>

#include <memory>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.post("/", [](const request& asked) { return response::text(std::string(asked.body())); });
#else
  routes.post("/", [](const request&, std::unique_ptr<char[]> body) {
    return response::text(std::string(body.get()));
  });
#endif
}
