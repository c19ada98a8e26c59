// A handler of HTTP that cannot be copied, and has a name.
// expect: troupe: this HTTP handler cannot be copied: hand it over with std::move()
#include <troupe/http/router.hpp>

#include <memory>

using troupe::http::request;
using troupe::http::response;

void use(troupe::http::router& routes) {
#ifdef CONTROL
  auto one = [words = std::make_unique<std::string>("hello")] { return response::text(*words); };
  routes.get("/", std::move(one));
#else
  auto one = [words = std::make_unique<std::string>("hello")] { return response::text(*words); };
  routes.get("/", one);
#endif
}
