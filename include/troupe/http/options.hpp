// server_options: all limits of a server, each with its unit, its default, and its effect.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::http {

// The limits and times of a server.
//
// Example:
//     troupe::http::server_options options;
//     options.body_bytes = 64 * 1024;
//     options.idle_time = std::chrono::seconds(5);
struct server_options {
  // Maximum bytes of a request's first line and its fields together. Default 16 KiB; at least 128.
  // More is answered 431.
  std::size_t head_bytes = 16 * 1024;
  // Maximum number of a request's fields. Default 100; more is answered 431.
  std::size_t fields = 100;
  // Maximum bytes of a request's target. Default 8 KiB; more is answered 414.
  std::size_t target_bytes = 8 * 1024;
  // Maximum time from the first byte of a head to its last one. Default 10 s; longer is answered
  // 408.
  std::chrono::nanoseconds head_time = std::chrono::seconds(10);

  // Maximum bytes of a request's body. Default 1 MiB; more is answered 413. A route may have a
  // limit of its own.
  std::size_t body_bytes = 1024 * 1024;
  // Maximum bytes of the extensions of all chunks of a body together. Default 16 KiB; more is
  // answered 400. The extensions of one chunk have at most 1 KiB.
  std::size_t chunk_extension_bytes = 16 * 1024;
  // Minimum rate of a body in bytes per second, on average, while the server waits for it. Default
  // 500; slower is answered 408. 0: no minimum. It also applies to a WebSocket message that has
  // begun; a slower one ends the connection (1008).
  std::size_t body_rate = 500;
  // Total time by which a body may be behind that rate. Default 5 s.
  std::chrono::nanoseconds body_grace = std::chrono::seconds(5);

  // Maximum time that a connection waits for its next request (or its first one); it is then
  // closed. Default 75 s.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(75);
  // Maximum time for which a peer may accept no byte of an answer; it is then closed. Default 20 s.
  std::chrono::nanoseconds write_time = std::chrono::seconds(20);

  // Whether a client that has ended its sending half counts as gone for request::client_gone().
  // Default true, since this cannot be distinguished from a closed connection. False: only a client
  // whose connection was reset, or to which a send has failed, counts as gone.
  bool half_close_is_gone = true;

  // For TLS: maximum time of a handshake. Default 10 s; longer ends the connection.
  std::chrono::nanoseconds handshake_time = std::chrono::seconds(10);
  // For TLS: maximum number of handshakes at a time. Default 1,024. At the limit, handshakes that
  // have taken a second or more are ended, the longest ones first, and listeners with TLS accept no
  // connection until a handshake ends; new ones wait in the listener's backlog. Listeners without
  // TLS are not affected.
  std::size_t handshakes = 1'024;
  // For TLS: how long a browser is to ask this host by https only, whatever a link says (the field
  // Strict-Transport-Security, in every answer over TLS). Default 0: no such field. Begin with a
  // short time: a browser that was told cannot be told otherwise without TLS.
  std::chrono::seconds strict_transport{0};
  // Whether that holds for the names below the host's, too. Default false.
  bool strict_transport_of_subdomains = false;

  // Maximum number of connections at a time. Default 16,000. At the limit, idle connections are
  // closed, the longest idle one first. If none is idle, no connection is accepted until one ends;
  // new ones wait in the listener's backlog.
  std::size_t connections = 16'000;
  // Maximum number of connections from one address at a time, for TCP. Default 1,024; one more is
  // answered 503 and closed.
  std::size_t connections_per_peer = 1'024;
  // Maximum bytes of the buffers of all connections together. Default 256 MiB. At the limit, the
  // effect is that of `connections`.
  std::size_t buffer_bytes = 256 * 1024 * 1024;

  // Time after stop() for requests that have begun. Default 10 s; then their connections are
  // closed.
  std::chrono::nanoseconds drain_time = std::chrono::seconds(10);

  // Value of the field Server. Default empty: no such field.
  std::string name;
};

}  // namespace troupe::http
