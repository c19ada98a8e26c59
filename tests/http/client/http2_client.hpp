// What the tests of the client's HTTP/2 share: a server of this library, over TLS and without it,
// and a client that asks it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "http/client/scripted.hpp"
#include "http/secure/https.hpp"
#include "support/open_files.hpp"

namespace troupe::test {

// Opens when `count` have come.
class gate {
 public:
  explicit gate(std::size_t count) : left_(count) {}
  task<> pass() {
    left_.count_down();
    co_await left_.wait();
  }

 private:
  latch left_;
};

class http2_client_conformance : public http_conformance {
 protected:
  using asking = std::function<task<>(http::client web, http::server server, std::string url)>;

  static http::client_options by_http2() {
    http::client_options chosen;
    chosen.http2_prior_knowledge = true;
    return chosen;
  }

  // Runs the client to its end, then the server. Checks that all descriptors are closed.
  void ask(http::router routes, asking what, http::client_options chosen = by_http2(),
           const http::server_options& limits = {}) {
    const int before = open_files();
    run(
        std::move(routes),
        [&](runtime&, http::server server, endpoint at) -> task<> {
          const http::client web(std::move(chosen));
          task<> asked = what(web, server, "http://127.0.0.1:" + std::to_string(at.port()));
          co_await std::move(asked);
          web.close_idle();
        },
        limits);
    EXPECT_EQ(open_files(), before);
  }
};

}  // namespace troupe::test
