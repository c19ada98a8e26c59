// server_options: every limit of a server, with its unit, its default, and what happens at it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace troupe::http {

// Example:
//     troupe::http::server_options options;
//     options.body_bytes = 64 * 1024;
//     options.idle_time = std::chrono::seconds(5);
struct server_options {
  // Bytes of a request's first line and its fields together. Default 16 KiB; more is answered 431.
  // At least 128.
  std::size_t head_bytes = 16 * 1024;
  // Fields of a request. Default 100; more is answered 431.
  std::size_t fields = 100;
  // Bytes of a request's target. Default 8 KiB; more is answered 414.
  std::size_t target_bytes = 8 * 1024;
  // From the first byte of a head to its last one. Default 10 s; longer is answered 408.
  std::chrono::nanoseconds head_time = std::chrono::seconds(10);

  // Bytes of a request's body. Default 1 MiB; more is answered 413. A route may have a limit of its
  // own.
  std::size_t body_bytes = 1024 * 1024;
  // Bytes of the extensions of all chunks of a body together. Default 16 KiB; more is answered 400.
  // Those of one chunk: at most 1 KiB.
  std::size_t chunk_extension_bytes = 16 * 1024;
  // Bytes a second at which a body must come at least, on average, while it is waited for. Default
  // 500; slower is answered 408. 0: any. A message of a WebSocket, once it has begun, counts as a
  // body; a slower one ends the connection (1008).
  std::size_t body_rate = 500;
  // It may be so late altogether before that counts. Default 5 s.
  std::chrono::nanoseconds body_grace = std::chrono::seconds(5);

  // A connection that waits for its next request (or its first one) is closed after so long.
  // Default 75 s.
  std::chrono::nanoseconds idle_time = std::chrono::seconds(75);
  // A peer that takes no byte of an answer for so long is closed. Default 20 s.
  std::chrono::nanoseconds write_time = std::chrono::seconds(20);

  // Whether a client that has ended its sending half counts as gone for request::client_gone().
  // Default true: one that has closed its connection cannot be told from it. False: only one whose
  // connection was reset, or to which a send has failed.
  bool half_close_is_gone = true;

  // Connections at a time. Default 16,000. At it, those that are idle are closed, the longest
  // first; when there are none, no more are accepted until one ends: they wait in the listener's
  // backlog.
  std::size_t connections = 16'000;
  // Connections of one address at a time, on TCP. Default 1,024; one more is answered 503 and
  // closed.
  std::size_t connections_per_peer = 1'024;
  // Bytes of the buffers of all connections together. Default 256 MiB. Above it, as at
  // `connections`.
  std::size_t buffer_bytes = 256 * 1024 * 1024;

  // After stop(): how long requests that have begun may take. Default 10 s; then their connections
  // are closed.
  std::chrono::nanoseconds drain_time = std::chrono::seconds(10);

  // Of the field Server. Default empty: there is no such field.
  std::string name;
};

}  // namespace troupe::http
