// server: HTTP/1.1 on any number of listeners.
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

// Copies are the same server. Each connection is a task of its own; its handlers run there, one
// after the other, and those of different connections at the same time.
//
// What a handler throws is answered 500, is a failure of the runtime (run() throws it), and ends
// the connection; http::refused is answered with its status, and is none.
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
  // Throws option_error for limits that make no sense, usage_error for a router whose routes
  // another server has.
  explicit server(router routes, const server_options& options = {});

  // Accepts connections and serves them until stop(); then it takes those that wait to be accepted,
  // and goes on until all requests that have begun are answered, for drain_time at most; then their
  // connections are ended. A handler that waits for something else than its peer is not
  // interrupted, and waited for no longer. In a task. Throws io_error when the listener fails.
  task<> serve(tcp_listener listener);
  // https. The handshake may take head_time. A peer that fails in it is closed, and is no failure.
  task<> serve(tcp_listener listener, tls_context self);
  task<> serve(unix_listener listener);

  // Connections that are idle end, within a second if their peers keep theirs; answers from now on
  // are the last of their connections. Any thread; once and for all.
  void stop() const;

  // How many there are.
  std::size_t connections() const noexcept;

 private:
  std::shared_ptr<server_state> state_;
};

}  // namespace troupe::http
