// connect: how a client gets a connection to an origin, directly or through a proxy.
#pragma once

#include <string>

#include "http/client/exchange.hpp"

namespace troupe::http {

// The way to an origin.
struct route {
  const proxy_server* by = nullptr;  // null: directly
  bool tunnel = false;               // CONNECT; else the proxy reads the requests
  bool streams = false;              // HTTP/2 may be spoken
  bool alone = false;                // by HTTP/1.1 on a connection of its own
  // Connections with the same name serve the same requests.
  std::string name;

  bool is_absolute() const noexcept { return by != nullptr && !tunnel; }
};
// `opaque`: the bytes on the connection are no HTTP, so that a proxy must not read them, and no
// other request uses the connection.
route route_to(const client_resources& core, const url& peer, bool opaque);

// Returns a new connection. Throws resolve_error, io_error, tls_error, client_error, timed_out,
// cancelled.
task<wire_ptr> connect(client_resources& core, const url& peer, const route& by,
                       const tasks::limits& within);

// "GET /path HTTP/1.1" and the field Host, in the form of the route; and the proxy's authorization.
std::string first_lines(const std::string& method, const url& peer, const route& by);
// Those fields of a request that go this way.
std::string fields_for(client_request& asked, const route& by);

}  // namespace troupe::http
