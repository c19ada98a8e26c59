// HTTP/2 over TLS: a client that offers it gets it.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"
#include "http/secure/https.hpp"

namespace troupe::test {
namespace {

class http2_secure : public https_conformance {};

TEST_P(http2_secure, is_agreed_on_with_clients_that_offer_it) {
  const tls_context self = tls_context::server(served());
  const std::string frames = h2::hello + h2::ask(1, h2::get("/"));
  run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
    tls_options offers = trusting_it();
    offers.alpn = {"http/1.1", "h2"};
    tls_stream peer = co_await connect_secretly(at, tls_context::client(offers));
    EXPECT_EQ(peer.alpn(), "h2");
    const std::string got = co_await ask_secretly(peer, frames, "hello");
    EXPECT_TRUE(got.ends_with("hello"));
    EXPECT_EQ(web.http2().streams, 1u);
    peer.close();
  });
}

// RFC 9113, 9.2.2. The server's own choice of ciphers has none of these.
TEST_P(http2_secure, is_ended_when_its_cipher_is_not_allowed) {
  tls_options options = served();
  options.max_version = tls_version::v1_2;
  const std::string frames = h2::hello + h2::ask(1, h2::get("/"));
  for (const std::string cipher : {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-GCM-SHA256"}) {
    options.ciphers = cipher;
    const tls_context self = tls_context::server(options);
    run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
      tls_options offers = trusting_it();
      offers.alpn = {"h2"};
      tls_stream peer = co_await connect_secretly(at, tls_context::client(offers));
      EXPECT_EQ(peer.cipher(), cipher);
      const bool is_allowed = cipher.ends_with("SHA256");
      std::string end = h2::number(0, 4) + h2::number(h2::inadequate_security, 4);
      if (is_allowed) end = "hello";
      const std::string got = co_await ask_secretly(peer, frames, end);
      EXPECT_TRUE(got.ends_with(end));
      EXPECT_EQ(web.http2().streams, is_allowed ? 1u : 0u);
      peer.close();
    });
  }
}

// Without ALPN a client of TLS speaks HTTP/1.1 (RFC 9113, 3.2).
TEST_P(http2_secure, is_not_spoken_to_clients_that_do_not_offer_it) {
  const tls_context self = tls_context::server(served());
  run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
    tls_stream peer = co_await connect_secretly(at, tls_context::client(trusting_it()));
    EXPECT_EQ(peer.alpn(), "");
    const std::string got = co_await ask_secretly(peer, h2::hello, "\n");
    EXPECT_TRUE(got.starts_with("HTTP/1.1 505")) << got;
    EXPECT_EQ(web.http2().connections, 0u);
    peer.close();
  });
}

TEST_P(http2_secure, is_not_offered_when_it_is_off) {
  const tls_context self = tls_context::server(served());
  http::server_options limits;
  limits.http2.is_on = false;
  run_secretly(
      hello_routes(), self,
      [&](http::server, endpoint at) -> task<> {
        tls_options offers = trusting_it();
        offers.alpn = {"h2", "http/1.1"};
        tls_stream peer = co_await connect_secretly(at, tls_context::client(offers));
        EXPECT_EQ(peer.alpn(), "http/1.1");
        const std::string got = co_await ask_secretly(peer, get_hello, "hello");
        EXPECT_TRUE(got.ends_with("hello"));
        peer.close();
      },
      limits);
}

TROUPE_HTTP_TEST_EACH(http2_secure);

}  // namespace
}  // namespace troupe::test

#endif
