// observe_page: the page of `troupe page`, and numbers for Prometheus, served by the program
// itself.
#pragma once

#include "troupe/base/language.hpp"

#include <functional>
#include <string>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/http/router.hpp"

namespace troupe {

// Options of add_observe_page().
struct observe_page_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  observe_page_options() {}

  static constexpr std::size_t token_bytes_min = 16;

  // The path of the page; begins and ends with '/'.
  std::string folder = "/troupe/";
  // The secret of readers from other machines: it is the password of HTTP's basic access, with any
  // user name, or a bearer token. Empty (default): only readers of this machine are served.
  // Otherwise at least 16 bytes; take 32 random digits.
  std::string token;
  // More names by which this machine's readers call it, such as "shop.internal", without a port.
  // Default none: "localhost" and the loopback's addresses alone. A page from elsewhere may give
  // itself a name that leads to the loopback, and must not read this one by it.
  std::vector<std::string> hosts;
  // Whether the program can serve its users now, for /readyz. Called by any thread, at the same
  // time as itself; must be quick. Default: it can, until the server stops.
  std::function<bool()> is_ready;
};

// Adds to the routes of a server of this program:
//   GET FOLDER    the page of docs/guide/observing.md, and below it the data that the page requests
//   GET /metrics  all numbers in the text format of Prometheus
//   GET /healthz  200 while the server answers
//   GET /readyz   200 while the program can serve its users, else 503
//
// A reader of this machine (of the loopback, by a name of it; or of a Unix socket) is served
// without a token. Others must come by https, and with the token; a reader gets 403 if it does not
// come by https or if there is no token, 401 if its token is wrong. The last two paths reveal
// nothing of the program, and are for everyone. A proxy on this machine makes all readers local:
// let it refuse them.
//
// Pages of other sites cannot ask: a request is answered 403 if a browser marks it as coming from
// one (Sec-Fetch-Site; an Origin that is not the request's Host), unless a person has followed a
// link to the page itself. A client, or a /64 network of
// IPv6, that has sent 10 wrong tokens within a minute is answered 429 until the minute is over,
// even if it sends the right one. The counts of at most 1,024 clients are kept. The last two paths
// are not concerned.
//
// The runtime must be observed (runtime_options::observe, or TROUPE_OBSERVE=1); otherwise the page
// is answered 503.
//
// Thread: as the router. Cost: an answer is made on a thread for calls that block, at most one at a
// time for all readers together. Errors: option_error for options that make no sense; usage_error
// if one of the paths is taken.
//
// Example (declarations):
//     #include <troupe/http/server.hpp>
//     troupe::http::server observed_server() {
//       troupe::http::router routes;
//       troupe::add_observe_page(routes);
//       return troupe::http::server(std::move(routes));
//     }
void add_observe_page(http::router& to, const observe_page_options& options = {});

}  // namespace troupe
