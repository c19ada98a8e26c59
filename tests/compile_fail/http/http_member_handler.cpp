// A member function as a handler of HTTP, without the object that it is to be called on.
// expect: troupe: a member function is no HTTP handler, for it has no object
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

struct site {
  response page() const { return response::text("hello"); }
};

void use(troupe::http::router& routes) {
#ifdef CONTROL
  static const site of_all{};
  routes.get("/", [] { return of_all.page(); });
#else
  routes.get("/", &site::page);
#endif
}
