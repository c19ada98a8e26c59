// server: serves HTTP/1.1 and HTTP/2 on any number of listeners, with TLS and without.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/http/options.hpp"
#include "troupe/http/router.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::http {

struct server_state;

// Counts of a server's TLS connections so far, by outcome. No outcome is a failure of the program.
struct handshake_counts {
  std::uint64_t under_way = 0;        // now
  std::uint64_t done = 0;             // handshakes that have succeeded
  std::uint64_t resumed = 0;          // of these, the ones that continued an earlier session
  std::uint64_t plain_http = 0;       // the client spoke HTTP without TLS, and was answered 400
  std::uint64_t bad_certificate = 0;  // the client's certificate is missing, or is not trusted
  std::uint64_t refused_by_peer = 0;  // the client sent an alert: it may not trust the server
  std::uint64_t bad_protocol = 0;     // no TLS, no common version or cipher, or too many bytes
  std::uint64_t truncated = 0;        // the client has ended the connection
  std::uint64_t timed_out = 0;        // it took longer than server_options::handshake_time
  std::uint64_t ended_by_server = 0;  // to make room, or because the server stops
  std::uint64_t lost = 0;             // the connection was reset

  // After the handshake: the client has ended the connection without a TLS close notification, as
  // many clients do that keep no connection; or it has sent damaged bytes or an alert.
  std::uint64_t unannounced_ends = 0;
  std::uint64_t damaged = 0;
};

// Counts of a server's HTTP/2 connections so far. The last eleven count connections that the server
// has ended because their client exceeded a limit (http2_limits) or broke the protocol.
struct http2_counts {
  std::uint64_t connections = 0;
  std::uint64_t streams = 0;          // requests
  std::uint64_t refused_streams = 0;  // there were too many at a time
  std::uint64_t reset_streams = 0;    // by the client

  std::uint64_t header_lists = 0;
  std::uint64_t resets = 0;
  std::uint64_t continuations = 0;
  std::uint64_t settings = 0;
  std::uint64_t pings = 0;
  std::uint64_t window_updates = 0;
  std::uint64_t priorities = 0;
  std::uint64_t empty_data = 0;
  std::uint64_t other_frames = 0;
  std::uint64_t unread_answers = 0;   // the client does not read the frames that the protocol
                                      // requires the server to send
  std::uint64_t protocol_errors = 0;  // any other error of the whole connection
};

// Counts of the PROXY protocol headers that a server expected (server_options::proxy_protocol), by
// outcome. All outcomes except for the first have ended their connection.
struct proxy_header_counts {
  std::uint64_t accepted = 0;
  std::uint64_t untrusted = 0;  // the connection is not from one of the networks
  std::uint64_t malformed = 0;  // no header, a malformed one, or one that is too long
  std::uint64_t timed_out = 0;  // it took longer than header_time
  std::uint64_t lost = 0;       // the proxy has ended the connection, or the server has stopped
};

// The memory and descriptors that a server keeps for its clients now (server_options::buffer_bytes
// and descriptors).
struct kept_counts {
  std::size_t bytes = 0, descriptors = 0;
  std::size_t clients = 0;               // for which something is kept
  std::size_t largest_client_bytes = 0;  // of one client that has a share
  std::uint64_t ended = 0;               // connections and streams that a limit has ended so far
};

// An HTTP server. Copies refer to the same server. Thread: each connection is a task of its own;
// the handlers of one connection run one after the other, the handlers of different connections
// concurrently. With HTTP/2 the waiting handlers of one connection run in turns, one at a time,
// between each other's waits.
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
  server(router routes, const server_options& options);
  explicit server(router routes) : server(std::move(routes), server_options()) {}

  // Accepts connections and serves them until stop(); await it in a task. After stop() it accepts
  // the connections that already wait, and completes when all requests that have begun are
  // answered. After drain_time it ends the remaining connections: their sockets are shut, and the
  // awaits of their handlers and functions throw cancelled, which is no failure of the program. It
  // does not wait for a function that blocking() runs, which cannot be cancelled. Throws io_error
  // if the listener fails.
  //
  // A function that streams an answer is cancelled at once when its client disconnects; a function
  // of response::events is cancelled at stop() as well, and its client sees a complete body. For a
  // WebSocket both end receive(); a function that does not receive is cancelled when its client
  // disconnects. A handler that makes an answer continues when its client disconnects
  // (request::client_gone()).
  task<> serve(tcp_listener listener);
  // The same with https; `self` usually is tls_context::server(tls_options::https(…)). Several
  // listeners may share one. A handshake that fails is no failure: the client receives an alert, or
  // an answer 400 if it speaks HTTP without TLS, and handshakes() counts it.
  task<> serve(tcp_listener listener, tls_context self);
  task<> serve(unix_listener listener);

  // Stops the server, for good. A busy connection ends after the answer to its current request; an
  // idle one first answers a request that is already there. Event streams and WebSockets end now.
  // The server waits for up to a second until the peer has also closed its side, so that no peer
  // loses its last answer. Thread: any.
  void stop() const;
  // As stop(), but a connection that is idle may send one more request within `idle_time`, which is
  // answered with `Connection: close`; with HTTP/2 the server asks its client at once to send new
  // requests elsewhere (GOAWAY). Therefore no client loses a request that it sends at the moment
  // when the server ends the connection: use it when other processes accept the new connections.
  // Event streams and WebSockets also end after that time. stop() ends it sooner. Thread: any.
  void drain(time_span idle_time) const;

  // The number of connections that are open now: busy ones, idle ones, and those that are being
  // turned away. Thread: any.
  std::size_t connections() const noexcept;
  // Thread: any. Cost: some loads.
  handshake_counts handshakes() const noexcept;
  // Thread: any. Cost: some loads.
  http2_counts http2() const noexcept;
  // Thread: any. Cost: a lock, and a step for each client.
  kept_counts kept() const noexcept;
  // Thread: any. Cost: some loads.
  proxy_header_counts proxy_headers() const noexcept;

 private:
  std::shared_ptr<server_state> state_;
};

// Routes for a server on the port without TLS: each request is answered 308, with the same target
// at https://; 400 if the request does not name its host. `port`: the port of the server with TLS.
//
// Example (declarations):
//     // Both listeners are served until both servers stop.
//     troupe::task<> serve_both(troupe::http::server web, troupe::tls_context self) {
//       troupe::http::server plain(troupe::http::redirect_to_https());
//       co_await troupe::when_all(
//           plain.serve(troupe::tcp_listener::listen(troupe::endpoint::any_v6(80))),
//           web.serve(troupe::tcp_listener::listen(troupe::endpoint::any_v6(443)), self));
//     }
router redirect_to_https(std::uint16_t port = 443);

}  // namespace troupe::http
