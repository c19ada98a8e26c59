// A handler of HTTP that returns no response.
// expect: troupe: an HTTP handler returns troupe::http::response or troupe::task<troupe::http::response>
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/", [] { return response::text("hello"); });
#else
  routes.get("/", [] { return std::string("hello"); });
#endif
}
