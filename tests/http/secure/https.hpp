// What the tests of HTTPS share: a server with TLS and its clients in one program.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/http.hpp"
#include "tls/certificates.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {

inline authority& the_authority() {
  static authority is("the authority");
  return is;
}
inline tls_options served() {
  static const identity own = the_authority().issue();
  tls_options options = showing(own);
  options.alpn = tls_options::https().alpn;
  return options;
}
inline tls_options trusting_it() {
  tls_options options;
  options.ca_pem = the_authority().certificate();
  return options;
}

inline task<tls_stream> connect_secretly(endpoint at, tls_context trust) {
  tls_stream peer =
      tls_stream::client(trust, co_await tcp_stream::connect(at), std::string("good.test"));
  co_await peer.handshake();
  co_return peer;
}

// Sends a request, and reads until the answer ends with `end`, or until the end.
inline task<std::string> ask_secretly(tls_stream& peer, std::string request, std::string end) {
  // Reads while it writes: in a simulation each side may have room for 100 bytes.
  auto writes = [](tls_stream& to, std::string bytes) -> task<> {
    try {
      co_await to.write_all(std::move(bytes));
    } catch (const error&) {  // the server has ended the connection
    }
  };
  future<> writing = spawn(writes(peer, std::move(request)));
  std::string got;
  std::array<char, 512> part;
  while (!got.ends_with(end)) {
    const std::size_t bytes = co_await peer.read(part);
    if (bytes == 0) break;
    got.append(part.data(), bytes);
  }
  co_await std::move(writing);
  co_return got;
}

inline const std::string get_hello = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n";

inline http::router hello_routes() {
  http::router routes;
  routes.get("/", [] { return http::response::text("hello"); });
  return routes;
}

class https_conformance : public http_conformance {
 protected:
  using secret_client = std::function<task<>(http::server, endpoint)>;

  // Runs the client to its end, then the server, then everything else. Returns what became of the
  // server's connections.
  http::handshake_counts run_secretly(http::router routes, const tls_context& self,
                                      secret_client talk, const http::server_options& limits = {}) {
    http::server web(std::move(routes), limits);
    runtime rt(options());
    auto both = [](runtime& in, http::server served_by, tls_context secret,
                   secret_client talks) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      future<> serving = in.spawn(served_by.serve(std::move(listener), std::move(secret)));
      std::exception_ptr failed;
      try {
        task<> talking = talks(served_by, at);
        co_await std::move(talking);
      } catch (...) {
        failed = std::current_exception();
      }
      served_by.stop();
      co_await std::move(serving);
      if (failed != nullptr) std::rethrow_exception(failed);
    };
    rt.spawn(both(rt, web, self, std::move(talk)));
    rt.run();
    return web.handshakes();
  }
};

}  // namespace troupe::test
