// client: sends requests to HTTP/1.1 and HTTP/2 servers, over TCP or TLS.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/dns/resolver.hpp"
#include "troupe/http/client/cookie_jar.hpp"
#include "troupe/http/client/proxies.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/client_message.hpp"
#include "troupe/http/options.hpp"
#include "troupe/http/url.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::http {

class client_core;

// The limits and times of a client, and the identities that it uses and trusts.
struct client_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  client_options() {}

  // The trusted certificates, and the client's own certificate. The client sets ALPN itself.
  tls_options tls;
  troupe::resolver resolver;

  // Time to find the address, to connect, and for the handshake, together. Default 10 s; then
  // timed_out.
  time_span connect_time = std::chrono::seconds(10);
  // Time from the request's last byte to the head of the answer. Default 30 s; then timed_out.
  time_span head_time = std::chrono::seconds(30);
  // Maximum time for which a server may accept no byte of a request. Default 20 s; then timed_out,
  // unless the server has already answered.
  time_span write_time = std::chrono::seconds(20);
  // Minimum rate of an answer's body in bytes per second, on average, while the client waits for
  // it; and the total time by which the body may be behind that rate. Default 100, and 20 s; a
  // slower body is a client_error, too_slow. 0: no minimum.
  std::size_t body_rate = 100;
  time_span body_grace = std::chrono::seconds(20);
  // Time from the first request, before redirects, to the end of the body. Default: no limit.
  // .timeout() sets it for one request.
  time_span total_time = time_span::max();

  // Maximum bytes of an answer's first line and fields together, and maximum number of fields.
  // Default 64 KiB, 200; more is a bad_response.
  std::size_t head_bytes = 64 * 1024;
  std::size_t fields = 200;
  // Maximum bytes that read_all() keeps. Default 16 MiB; more is a client_error, body_too_large.
  // read() has no limit.
  std::size_t body_bytes = 16 * 1024 * 1024;
  // Maximum bytes of an answer's body after decoding. Default 0: the client asks for no
  // compression, and a body is read as it arrives. With a limit the client asks for gzip, br and
  // zstd, unless the request has a range or a field Accept-Encoding of its own, and decodes a body
  // in one of these codings while it is read; the answer then has neither a length nor the fields
  // Content-Encoding and Content-Length. A larger body is a client_error, decoded_too_large; a
  // malformed body is a bad_response. Memory until the end of such a body: 56 KiB for gzip; for the
  // others the window that the server has chosen, at most 16 MiB for br and 8 MiB for zstd.
  std::uint64_t decoded_body_bytes = 0;

  // Maximum bytes that the client keeps of answers that the program has not taken: bodies that
  // arrived by HTTP/2 and were not read, the bytes collected by read_all(), buffers for decoding,
  // and messages of WebSockets with their compressors; for all origins together, and for one
  // origin. Default 2 GiB; 0: an eighth of it for each origin. Past a limit the largest kept answer
  // or WebSocket of the origin with the most kept bytes ends: its next read or receive() throws
  // client_error, too_much_kept. At least 1 MiB.
  std::size_t buffer_bytes = std::size_t{2} << 30;
  std::size_t buffer_bytes_per_origin = 0;

  // Maximum number of redirects that are followed. Default 10; one more is a client_error. 0: a
  // redirect is an answer like others.
  int redirects = 10;
  // Whether a redirect from https to http is followed. Default false: it is a client_error,
  // insecure_redirect.
  bool insecure_redirects = false;

  // Default: no proxy. proxy_settings::from_environment() reads the environment's.
  proxy_settings proxies;

  // Where the cookies of answers are kept, and from where they are sent. Default: cookies are
  // ignored. A request that has its own field Cookie gets no cookies from there.
  std::optional<cookie_jar> cookies;

  // Maximum number of connections to one origin that are used at a time, from the request until the
  // end of the answer's body; for a WebSocket until its end. Default 256, at least 1. Further
  // requests wait, in their order: at most requests_waiting of them (default 1,024; 0: none), each
  // for at most waiting_time (default 10 s). Beyond these limits a request ends with origin_full.
  // A task that holds an unread answer and asks for another one needs two connections.
  std::size_t connections_per_origin = 256, requests_waiting = 1'024;
  time_span waiting_time = std::chrono::seconds(10);

  // Maximum number of connections that are kept for later requests, for one origin and in total.
  // Default 8 and 128; the oldest are closed first. Each is kept for idle_time, default 30 s. Kept
  // connections do not keep the program alive.
  std::size_t idle_per_origin = 8, idle = 128;
  time_span idle_time = std::chrono::seconds(30);

  // HTTP/2 (http2_limits::is_on, default true). It is spoken over TLS when the server chooses it
  // (ALPN). Requests to one origin then share a connection, each on a stream of its own, up to
  // http2.streams and the server's limit; a further connection is opened when all are full, up to
  // connections_per_origin. If a server exceeds one of the other limits, its connection is closed,
  // and the requests on it end with a bad_response. http2.stream_window: bytes of one answer that
  // are kept while its caller does not read. Default 256 KiB; a smaller window limits the speed
  // over long distances.
  http2_limits http2 = [] {
    http2_limits limits;
    limits.stream_window = 256 * 1024;
    return limits;
  }();
  // Whether requests to http URLs use HTTP/2 without negotiation (h2c): the server must support it.
  // Default false. Requests through a proxy that reads them use HTTP/1.1. An option_error if the
  // library was built without nghttp2.
  bool http2_prior_knowledge = false;

  // Value of the field User-Agent. Default "troupe"; empty: no such field.
  std::string user_agent = "troupe";
};

// The call of client::send(), in a limited_task: sends when it is awaited.
class send_call {
 public:
  using result = client_response;
  send_call(std::shared_ptr<client_core> by, client_request asked) noexcept
      : by_(std::move(by)), asked_(std::move(asked)) {}
  task<client_response> start(tasks::limits within) &&;

 private:
  std::shared_ptr<client_core> by_;
  client_request asked_;
};
using sending = tasks::limited_task<send_call>;

// The call of client::websocket(), in a limited_task: connects when it is awaited.
class websocket_call {
 public:
  using result = std::unique_ptr<http::websocket>;
  websocket_call(std::shared_ptr<client_core> by, client_request asked,
                 websocket_options options) noexcept
      : by_(std::move(by)), asked_(std::move(asked)), options_(std::move(options)) {}
  task<std::unique_ptr<http::websocket>> start(tasks::limits within) &&;

 private:
  std::shared_ptr<client_core> by_;
  client_request asked_;
  websocket_options options_;
};
using opening = tasks::limited_task<websocket_call>;

// An HTTP client for one runtime. Thread: any. Copies refer to the same client. Any number of
// requests may be under way: by HTTP/1.1 each on its own connection, by HTTP/2 on streams of a
// shared connection. Connections are kept and serve later requests to the same origin.
//
// Certificates are verified by default. Redirects are followed, but from https to http only if that
// is allowed. A redirected request to another origin is sent without the fields Authorization,
// Cookie and Proxy-Authorization. A 303, and a 301 or 302 of a POST, is followed with GET. A
// request is sent a second time only if a kept connection ended before the first byte of the
// answer, and the method allows repetition (GET, HEAD, PUT, DELETE, OPTIONS, TRACE); or if a server
// of HTTP/2
// refuses it, at most eight times, or ends a connection without having handled it, at most ten
// times.
//
// Example (declarations):
//     troupe::task<> show(troupe::http::client web) {
//       troupe::http::client_response answer =
//           co_await web.get("https://example.org/").timeout(std::chrono::seconds(30));
//       std::cout << answer.status() << ' ' << answer.field("Content-Type") << '\n';
//       std::cout << co_await answer.read_all();
//     }
class client {
 public:
  // Throws option_error.
  explicit client(client_options options = {});

  // Sends a request; co_await gives the answer as soon as its head has arrived, whatever its
  // status. Await it in a handler or a task, optionally with .timeout(span) and .stop(token), which
  // also apply to the answer's body. Errors: client_error, origin_full, resolve_error, io_error,
  // tls_error, timed_out, cancelled.
  sending send(client_request asked) const {
    return sending(std::in_place, core_, std::move(asked));
  }
  sending get(std::string url) const { return send(client_request("GET", std::move(url))); }
  sending head(std::string url) const { return send(client_request("HEAD", std::move(url))); }
  sending post(std::string url, std::string body, std::string_view type) const {
    client_request asked("POST", std::move(url));
    asked.body(std::move(body), type);
    return send(std::move(asked));
  }

  // Opens a WebSocket at a URL of the scheme ws, wss, http or https. By HTTP/2 it uses one stream
  // of a connection, if the server allows that (RFC 8441), and keeps the program alive; by HTTP/1.1
  // it has a connection of its own. The request is a GET without a body, optionally with fields
  // (Origin, Cookie). .timeout(span) and .stop(token) apply to the handshake. Redirects are not
  // followed. Thread: one task uses the WebSocket, and calls close() or receives to its end.
  // Errors: option_error, usage_error, and the errors of send(), among them client_error,
  // not_upgraded or bad_handshake.
  //
  // Example (declarations):
  //     troupe::task<> greet(troupe::http::client web) {
  //       troupe::http::websocket_options options;
  //       options.subprotocols = {"chat.v2", "chat.v1"};
  //       options.deflate.emplace();
  //       const auto peer = co_await web.websocket("wss://example.org/chat", std::move(options));
  //       std::cout << peer->subprotocol() << '\n';
  //       co_await peer->send("hello");
  //       while (const auto said = co_await peer->receive()) std::cout << said->data << '\n';
  //     }
  opening websocket(client_request asked, websocket_options options = {}) const {
    return opening(std::in_place, core_, std::move(asked), std::move(options));
  }
  opening websocket(std::string url, websocket_options options = {}) const {
    return websocket(client_request("GET", std::move(url)), std::move(options));
  }

  // The number of kept connections.
  std::size_t idle() const;
  // Closes the kept connections. Thread: any.
  void close_idle() const;

 private:
  std::shared_ptr<client_core> core_;
};

}  // namespace troupe::http
