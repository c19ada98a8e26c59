// server: serves HTTP/1.1 on any number of listeners.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "troupe/http/options.hpp"
#include "troupe/http/router.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::http {

struct server_state;

// An HTTP server. Copies refer to the same server. Thread: each connection is a task of its own;
// the handlers of one connection run one after the other, those of different connections
// concurrently.
//
// Errors: an exception from a handler is answered 500, is a failure of the runtime (run() throws
// it), and ends the connection. http::refused is answered with its status and is no failure.
//
// Example:
//     troupe::task<> serve(troupe::http::server web, troupe::tcp_listener listener) {
//       co_await web.serve(std::move(listener));
//     }
//     int main() {
//       troupe::http::router routes;
//       routes.get("/", [] { return troupe::http::response::text("hello\n"); });
//       troupe::http::server web(std::move(routes));
//       troupe::runtime rt;
//       rt.spawn(serve(web, troupe::tcp_listener::listen(troupe::endpoint::loopback(0))));
//       rt.after(std::chrono::milliseconds(10), [web] { web.stop(); });
//       rt.run();
//     }
class server {
 public:
  // Throws option_error for limits that make no sense, usage_error for a router whose routes were
  // moved into another server.
  explicit server(router routes, const server_options& options = {});

  // Accepts connections and serves them until stop(); await it in a task. After stop() it takes the
  // connections that wait to be accepted, and completes when all requests that have begun are
  // answered. After drain_time it ends the remaining connections. It does not interrupt a handler
  // that waits for something else than its peer, and waits for it no longer. Throws io_error if the
  // listener fails.
  task<> serve(tcp_listener listener);
  // The same with https. The handshake may take head_time. A peer whose handshake fails is closed;
  // this is no failure.
  task<> serve(tcp_listener listener, tls_context self);
  task<> serve(unix_listener listener);

  // Stops the server, for good. A busy connection ends after the answer to its current request; an
  // idle one first answers a request that is already there. The server waits for up to a second
  // until the peer has closed its side, too, so that no peer loses its last answer. Thread: any.
  void stop() const;

  // The number of connections that are open now: busy ones, idle ones, and those that are being
  // turned away. Thread: any.
  std::size_t connections() const noexcept;

 private:
  std::shared_ptr<server_state> state_;
};

}  // namespace troupe::http
