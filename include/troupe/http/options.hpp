// server_options: all limits of a server, each with its unit, its default, and its effect.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/http/behind_proxy/network.hpp"

namespace troupe::http {

// The limits of a connection that speaks HTTP/2. The limits of server_options for heads, bodies and
// times also hold, for each stream. Beyond a limit of this struct, unless its comment names another
// reaction, the server sends GOAWAY with ENHANCE_YOUR_CALM, ends the connection, and counts it
// (server::http2()). A client has the same limits for its servers (client_options::http2), and does
// the same; its requests then end with a client_error, bad_response.
//
// Example:
//     troupe::http::server_options options;
//     options.http2.streams = 16;
//     options.http2.is_on = false;  // HTTP/1.1 only
struct http2_limits {
  // Whether the server speaks HTTP/2: over TLS when the client prefers it (ALPN) and the options of
  // TLS name "http/1.1"; without TLS to a client that begins with the preface of HTTP/2. Default
  // true. Without effect if the library was built without nghttp2.
  bool is_on = true;

  // Maximum number of streams at a time, which are requests whose handler has not ended or whose
  // answer is not sent. Default 100. One more is refused (REFUSED_STREAM), and its client may ask
  // again.
  std::size_t streams = 100;
  // Bytes of a body that a client may send on one stream before a handler reads them. Default 64
  // KiB, at least 1 KiB, at most 2^31-1. The client waits when they are sent.
  std::size_t stream_window = 64 * 1024;
  // Maximum bytes of the bodies that a connection collects for handlers that are no coroutines.
  // Default 4 MiB. Beyond that only the oldest of these requests may send more; the others wait.
  std::size_t collected_bytes = 4 * 1024 * 1024;

  // The span in which the frames below are counted. Default 10 s.
  time_span span = std::chrono::seconds(10);
  // Maximum number of streams that end by a reset in a span: by one of the client (rapid reset,
  // CVE-2023-44487), or by one of the server for an error of the client. Default 200.
  std::size_t resets = 200;
  // Maximum number of CONTINUATION frames of one head (CVE-2024-28182). Default 8.
  std::size_t continuations = 8;
  // Maximum number of SETTINGS frames in a span. Default 100.
  std::size_t settings = 100;
  // Maximum number of PING frames in a span, beside one for each DATA frame that the server sends.
  // Default 200.
  std::size_t pings = 200;
  // Maximum number of WINDOW_UPDATE frames in a span, beside 10 for each DATA frame that the server
  // sends, and 2 for each stream. Default 1,000.
  std::size_t window_updates = 1'000;
  // Maximum number of PRIORITY and PRIORITY_UPDATE frames in a span, beside 2 for each stream.
  // Default 200.
  std::size_t priorities = 200;
  // Maximum number of DATA frames in a span that neither have content nor end a body. Default 100.
  std::size_t empty_data = 100;
  // Maximum number of frames of unknown types and of GOAWAY frames in a span. Default 200.
  std::size_t other_frames = 200;
};

// The PROXY protocol, versions 1 and 2, with which a proxy that does not speak HTTP names the
// client of a connection. With it, all listeners of the server expect the header, which precedes
// even TLS; request::peer() is then the client.
//
// Example:
//     troupe::http::server_options options;
//     options.proxy_protocol.from = {"10.0.0.0/8", "unix"};
struct proxy_protocol_options {
  // Where the proxies are. Default empty: the server expects no header. Otherwise each connection
  // begins with a header, and a connection from elsewhere is closed at once, and counted
  // (server::proxy_headers()).
  std::vector<network> from;
  // Maximum bytes of a header. Default 1 KiB; at least 107. A longer one ends the connection
  // without an answer, as a malformed one does, and is counted.
  std::size_t header_bytes = 1024;
  // Maximum time from the acceptance of the connection to the end of its header. Default 5 s;
  // longer ends the connection without an answer, and is counted.
  time_span header_time = std::chrono::seconds(5);
};

// The field in which the trusted proxies name the client of a request.
enum class forwarded_field : std::uint8_t {
  x_forwarded_for,  // X-Forwarded-For
  forwarded,        // Forwarded (RFC 7239)
};

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
  time_span head_time = std::chrono::seconds(10);

  // Maximum bytes of a request's body. Default 1 MiB; more is answered 413. A route may have a
  // limit of its own.
  std::size_t body_bytes = 1024 * 1024;
  // Maximum bytes of a body with a Content-Encoding (gzip, br, zstd) after decoding; `body_bytes`
  // limits the bytes that arrive. A handler then reads the decoded body; Content-Encoding and
  // Content-Length still describe the body that arrived. Default 0: bodies are given to handlers as
  // they arrive. More is answered 413, another coding 415, and a malformed body 400. A route may
  // have a limit of its own. Memory of a request with such a body, until its end: 56 KiB for gzip;
  // for the others the window that the client has chosen, at most 16 MiB for br and 8 MiB for zstd.
  std::size_t decoded_body_bytes = 0;
  // Maximum bytes of the extensions of all chunks of a body together. Default 16 KiB; more is
  // answered 400. The extensions of one chunk have at most 1 KiB.
  std::size_t chunk_extension_bytes = 16 * 1024;
  // Minimum rate of a body in bytes per second, on average, while the server waits for it. Default
  // 500; slower is answered 408. 0: no minimum. It also applies to a WebSocket message that has
  // begun; a slower one ends the connection (1008).
  std::size_t body_rate = 500;
  // Total time by which a body may be behind that rate. Default 5 s. Bytes that come early buy at
  // most 5 s more. Time does not count while the server grants no window.
  time_span body_grace = std::chrono::seconds(5);

  // Maximum time that a connection waits for its next request (or its first one); it is then
  // closed. Default 75 s.
  time_span idle_time = std::chrono::seconds(75);
  // Maximum time for which a peer may accept no byte of an answer; it is then closed. Default 20 s.
  // With HTTP/2 this holds for each stream, and bytes count at `body_rate`: a stream whose client
  // takes less is reset, and the connection continues. A stream that has nothing to send, as
  // between the events of an event stream, may stay open.
  time_span write_time = std::chrono::seconds(20);

  // Whether a client that has ended its sending half counts as gone for request::client_gone().
  // Default true, since this cannot be distinguished from a closed connection. False: only a client
  // whose connection was reset, or to which a send has failed, counts as gone.
  bool half_close_is_gone = true;

  // For TLS: maximum time of a handshake. Default 10 s; longer ends the connection.
  time_span handshake_time = std::chrono::seconds(10);
  // For TLS: maximum number of handshakes at a time. Default 1,024. At the limit, handshakes that
  // have taken a second or more are ended, the longest ones first, and listeners with TLS accept no
  // connection until a handshake ends; new ones wait in the listener's backlog. Listeners without
  // TLS are not affected. One client may make an eighth of them at a time, at least 16; its further
  // connections are accepted, and wait for their turn.
  std::size_t handshakes = 1'024;
  // For TLS: the time for which a browser must use https for this host, whatever the scheme of a
  // link (the field Strict-Transport-Security, in every answer over TLS). Default 0: no such field.
  // Begin with a short time: a browser that has received the field cannot be reset without TLS.
  time_span strict_transport{};
  // Whether that also holds for the names below the host's. Default false.
  bool strict_transport_of_subdomains = false;

  // Maximum number of connections at a time. Default 16,000. At the limit, idle connections are
  // closed, the longest idle one first. If none is idle, no connection is accepted until one ends;
  // new ones wait in the listener's backlog.
  std::size_t connections = 16'000;
  // Maximum number of connections from one address at a time, for TCP; of IPv6, from one /64
  // network. Default 1,024; one more is answered 503 and closed. While the handler of a request may
  // wait, a connection from one of `trusted_proxies` counts for the client of that request.
  std::size_t connections_per_peer = 1'024;
  // Maximum bytes that the server keeps for all clients together: bodies that no handler has read
  // or that it collects, unfinished messages of WebSockets, answers that are not sent yet,
  // decoders, buffers, and the state of HTTP/2. Default 256 MiB. Beyond it the largest connection
  // or stream of the client for which most is kept ends: a request is answered 503 if possible, and
  // a stream is reset (ENHANCE_YOUR_CALM). At the limit, idle connections are closed before new
  // ones are accepted.
  std::size_t buffer_bytes = 256 * 1024 * 1024;
  // The share of one client: an address, and of IPv6 a /64 network; behind `trusted_proxies` and
  // with `proxy_protocol` the client that they name. Default 0: one eighth of `buffer_bytes`, at
  // least 1 MiB. Beyond it the largest connection or stream of this client ends, as above. Trusted
  // proxies and Unix sockets have no share; the limit for all holds for them.
  std::size_t buffer_bytes_per_peer = 0;
  // Maximum number of descriptors that connections and the files of answers take together. Default
  // 0: seven eighths of the process's limit (RLIMIT_NOFILE). At the limit, the effect is as for
  // `connections`; files of the client that has most of them are closed, and their answers end.
  std::size_t descriptors = 0;
  // The share of one client. Default 0: one eighth of `descriptors`, at least 16. Beyond it the
  // client's answers with files end; if it has none, its next connection is answered 503 and
  // closed.
  std::size_t descriptors_per_peer = 0;

  // HTTP/2.
  http2_limits http2;

  // From which proxies the header of the PROXY protocol is expected. Default: none.
  proxy_protocol_options proxy_protocol;
  // The proxies that report their clients: request::client() believes the entries of the field
  // `forwarded_by` that these have written. Default empty: the field is ignored.
  std::vector<network> trusted_proxies;
  // The field of these reports. Default X-Forwarded-For. Choose the field that your proxies write:
  // they pass the other field on as the client has sent it, and the server ignores it.
  forwarded_field forwarded_by = forwarded_field::x_forwarded_for;

  // Time after stop() for requests that have begun. Default 10 s; then their connections are
  // closed.
  time_span drain_time = std::chrono::seconds(10);

  // Value of the field Server. Default empty: no such field.
  std::string name;
};

}  // namespace troupe::http
