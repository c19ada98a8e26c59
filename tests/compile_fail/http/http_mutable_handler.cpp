// A handler of HTTP that changes what it captures, which several threads would do at a time.
// expect: troupe: an HTTP handler is called by several threads at a time and cannot change its captures
#include <troupe/http/router.hpp>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  routes.get("/{id}", [count = 0](int) { return response::text(std::to_string(count)); });
#else
  routes.get("/{id}", [count = 0](int) mutable { return response::text(std::to_string(++count)); });
#endif
}
