// client: asks servers of HTTP/1.1, over TCP or TLS.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/dns/resolver.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/client_message.hpp"
#include "troupe/http/url.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/tls/context.hpp"

namespace troupe::http {

class client_core;

struct client_options {
  // Not an aggregate: GCC 12 destroys what a temporary one holds twice when it lies in a co_await
  // expression.
  client_options() {}

  // Whom to trust, and who we are. ALPN is the client's own.
  tls_options tls;
  troupe::resolver resolver;

  // Finding the address, connecting, and the handshake together. Default 10 s; then timed_out.
  std::chrono::nanoseconds connect_time = std::chrono::seconds(10);
  // From the request's last byte to the answer's head. Default 30 s; then timed_out.
  std::chrono::nanoseconds head_time = std::chrono::seconds(30);
  // A server that takes no byte of a request for so long: timed_out, unless it has answered by
  // then. Default 20 s.
  std::chrono::nanoseconds write_time = std::chrono::seconds(20);
  // Bytes a second at which an answer's body must come at least, on average, while it is waited
  // for; it may be so late altogether before that counts. Default 100, and 20 s; slower is a
  // client_error, too_slow. 0: any.
  std::size_t body_rate = 100;
  std::chrono::nanoseconds body_grace = std::chrono::seconds(20);
  // From the first redirect to the end of the body. Default: no limit; .timeout() of a request is
  // the same for one.
  std::chrono::nanoseconds total_time = std::chrono::nanoseconds::max();

  // Bytes of an answer's first line and fields together, and how many fields. Default 64 KiB, 200;
  // more is a bad_response.
  std::size_t head_bytes = 64 * 1024;
  std::size_t fields = 200;
  // What read_all() keeps. Default 16 MiB; more is a client_error, body_too_large. read() has no
  // limit.
  std::size_t body_bytes = 16 * 1024 * 1024;

  // How many are followed. Default 10; one more is a client_error. 0: a redirect is an answer like
  // others.
  int redirects = 10;

  // Connections that are kept for the next request: of one origin, and altogether; default 8 and
  // 128, the oldest go first. And for how long: default 30 s. They do not keep the program alive.
  std::size_t idle_per_origin = 8, idle = 128;
  std::chrono::nanoseconds idle_time = std::chrono::seconds(30);

  // Of the field User-Agent. Default "troupe"; empty: there is none.
  std::string user_agent = "troupe";
};

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

// Any thread; copies are the same client. For one runtime. Any number of requests at a time, each
// on a connection of its own; connections are kept, and serve the next request to the same origin.
//
// Certificates are verified by default. Redirects are followed, but not from https to http; to
// another origin without the fields Authorization, Cookie and Proxy-Authorization; a 303, and a 301
// or 302 of a POST, by GET. A request is sent a second time only when a connection that was kept
// ended before a byte of the answer came, and when the method says that it makes no difference
// (GET, HEAD, PUT, DELETE, OPTIONS, TRACE). There are no cookies, no proxies and no compression of
// bodies.
//
// Example (declarations):
//     troupe::task<> show(troupe::http::client web) {
//       troupe::http::client_response answer = co_await
//       web.get("https://example.org/").timeout(std::chrono::seconds(30)); std::cout <<
//       answer.status() << ' ' << answer.field("Content-Type") << '\n'; std::cout << co_await
//       answer.read_all();
//     }
class client {
 public:
  // Throws option_error.
  explicit client(client_options options = {});

  // In a handler or a task; with .timeout(span) and .stop(token) if you like, which hold for the
  // body as well. The answer's head is there then, whatever its status is. Throws client_error,
  // resolve_error, io_error, tls_error, timed_out, cancelled.
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

  // Opens a WebSocket at a URL of the scheme ws, wss, http or https, on a connection of its own;
  // .timeout(span) and .stop(token) hold for the handshake. The request is a GET without a body,
  // perhaps with fields (Origin, Cookie). Redirects are not followed. What is given is used in one
  // task, which close()s it or receives to its end. Throws option_error, usage_error, and as
  // send(): among them client_error, not_upgraded or bad_handshake.
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

  // Connections that are kept.
  std::size_t idle() const;
  void close_idle() const;

 private:
  std::shared_ptr<client_core> core_;
};

}  // namespace troupe::http
