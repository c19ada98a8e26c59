// Our client asks our server by HTTPS: by HTTP/2 if both agree to it.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/client/http2_client.hpp"
#include "http/coding/encoder.hpp"
#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using http::client;
using http::client_options;
using http::client_request;
using http::client_response;
using http::request;
using http::response;
using http::router;

class client_http2_secure : public https_conformance {
 protected:
  using asking = std::function<task<>(client web, http::server server, std::string url)>;

  static const authority& trusted() {
    static const authority one("the authority");
    return one;
  }
  static tls_options shown() {
    static const identity own = trusted().issue({.names = "DNS:localhost"});
    tls_options made = showing(own);
    made.alpn = tls_options::https().alpn;
    return made;
  }
  static client_options trusting() {
    client_options made;
    made.tls.ca_pem = trusted().certificate();
    return made;
  }

  // Runs the client to its end, then the server. Checks that all descriptors are closed, and that
  // no handshake has failed.
  void ask(router routes, asking what, client_options chosen = trusting(),
           const tls_options& self = shown(), const http::server_options& limits = {}) {
    const int before = open_files();
    const http::handshake_counts counts = run_secretly(
        std::move(routes), tls_context::server(self),
        [&](http::server server, endpoint at) -> task<> {
          const client web(std::move(chosen));
          task<> asked = what(web, server, "https://localhost:" + std::to_string(at.port()));
          co_await std::move(asked);
          web.close_idle();
        },
        limits);
    EXPECT_GT(counts.done, 0u);
    EXPECT_EQ(counts.bad_certificate + counts.bad_protocol + counts.truncated, 0u);
    EXPECT_EQ(open_files(), before);
  }
};

router some_routes() {
  router routes;
  routes.get("/", [](const request& asked) {
    return response::text(std::to_string(asked.head().major_version) +
                          (asked.secure() ? " secure" : " plain"));
  });
  routes.post("/echo", [](request& asked) -> task<response> {
    const std::string_view body = co_await asked.read_all();
    co_return response::text(std::string(body));
  });
  routes.post("/behind", [](request& asked) -> task<response> {
    const std::string_view body = co_await asked.read_all();
    std::string all(body);
    for (const http::field one : asked.trailer()) {
      all += " " + std::string(one.name);
      all += "=" + std::string(one.value);
    }
    co_return response::text(std::move(all));
  });
  routes.get("/trailer", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("body");
      to.trailer("Sum", "7");
    });
  });
  return routes;
}

task<> ask_into(client web, std::string url, std::vector<std::string>& all) {
  all.push_back(co_await outcome_of(web.get(url)));
}

TEST_P(client_http2_secure, requests_share_a_connection) {
  ask(some_routes(), [](client web, http::server server, std::string url) -> task<> {
    std::vector<std::string> got;
    const auto body = [&](task_scope& in) -> task<> {
      for (int i = 0; i < 20; ++i) in.spawn(ask_into(web, url + "/", got));
      co_return;
    };
    co_await scope(body);
    EXPECT_EQ(got, std::vector<std::string>(20, "200 2 secure"));
    const std::string later = co_await outcome_of(web.get(url + "/"));
    EXPECT_EQ(later, "200 2 secure");
    EXPECT_EQ(server.http2().connections, 1u);
    EXPECT_EQ(server.http2().streams, 21u);
  });
}

TEST_P(client_http2_secure, bodies_and_trailers) {
  ask(some_routes(), [](client web, http::server server, std::string url) -> task<> {
    for (const std::size_t bytes : {0u, 1u, 900'000u}) {
      client_request asked("POST", url + "/echo");
      asked.body(std::string(bytes, 'x'), "text/plain");
      client_response answer = co_await web.send(std::move(asked));
      const std::string all = co_await answer.read_all();
      EXPECT_TRUE(all == std::string(bytes, 'x')) << bytes;
    }
    client_response answer = co_await web.get(url + "/trailer");
    const std::string all = co_await answer.read_all();
    EXPECT_EQ(all, "body");
    EXPECT_EQ(answer.trailer()["sum"], "7");
    EXPECT_EQ(server.http2().connections, 1u);
  });
}

client_request with_trailer(const std::string& url, const std::string& body) {
  client_request asked("POST", url);
  http::upload_function how = [body](http::upload& to) -> task<> {
    co_await to.write(body);
    EXPECT_THROW(to.trailer("Content-Length", "1"), usage_error);
    EXPECT_THROW(to.trailer("Sum", "1\r\nx: y"), usage_error);
    to.trailer("Sum", "7");
    to.trailer("Sign", "abc");
  };
  asked.body(std::move(how), "text/plain");
  return asked;
}

TEST_P(client_http2_secure, fields_behind_a_body_that_is_sent) {
  const asking by = [](client web, http::server, std::string url) -> task<> {
    for (const std::string body : {"", "body"}) {
      client_request asked = with_trailer(url + "/behind", body);
      const std::string got = co_await outcome_of(web.send(std::move(asked)));
      EXPECT_TRUE(got == "200 " + body + " sum=7 sign=abc" ||
                  got == "200 " + body + " Sum=7 Sign=abc")
          << got;
    }
  };
  ask(some_routes(), by);
  client_options by_1 = trusting();
  by_1.http2.is_on = false;
  ask(some_routes(), by, by_1);
}

// Whether a frame HEADERS is in what a client has sent.
bool has_headers(std::string_view sent) {
  constexpr std::size_t preface = 24, head = 9;
  for (std::size_t at = preface; at + head <= sent.size();) {
    if (sent[at + 3] == 1) return true;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bytes = bytes << 8 | static_cast<unsigned char>(sent[at + i]);
    at += head + bytes;
  }
  return false;
}

// What a server hears last, over TLS: GOAWAY without an error, and the end of TLS.
TEST_P(client_http2_secure, a_kept_connection_ends_with_goaway) {
  std::string heard;
  runtime rt(options());
  const auto serve = [&](tcp_listener listener, tls_context self) -> task<> {
    tls_stream one = tls_stream::server(self, co_await listener.accept());
    co_await one.handshake();
    const std::string settings = h2::settings_of({});
    co_await one.write_all(settings);
    std::array<char, 4096> room;
    bool answered = false;
    for (;;) {
      const std::size_t bytes = co_await one.read(room);  // an end without TLS's own would throw
      if (bytes == 0) break;
      heard.append(room.data(), bytes);
      // An answer that comes before its request is an error of the server.
      if (answered || !has_headers(heard)) continue;
      answered = true;
      const std::string answer = h2::ask(1, {{":status", "204"}});
      co_await one.write_all(answer);
    }
  };
  const auto ask_once = [&](client web, std::string url) -> task<> {
    const std::string got = co_await outcome_of(web.get(url));
    EXPECT_EQ(got, "204 ");
    while (web.idle() == 0) co_await sleep_for(std::chrono::milliseconds(1));
    web.close_idle();
  };
  tls_options self = shown();
  self.alpn = {"h2"};
  const auto both = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    std::string url = "https://localhost:" + std::to_string(listener.local().port()) + "/";
    const tls_context secret = tls_context::server(self);
    auto running = when_all(serve(std::move(listener), secret), ask_once(client(trusting()), url));
    co_await std::move(running);
  };
  rt.spawn(both());
  rt.run();
  const std::string last = h2::frame_of(h2::goaway, 0, 0, std::string(8, '\0'));
  EXPECT_TRUE(heard.ends_with(last)) << heard.size();
}

// A bomb is left early, and the connection serves the next request.
TEST_P(client_http2_secure, compressed_bodies) {
  std::string bomb;
  http::make_encoder(http::coding::gzip)
      ->add(std::string(3'000'000, 'a'), bomb, http::encoder::until::end);
  router routes = some_routes();
  routes.get("/bomb",
             [&] { return response::owned(bomb, "text/plain").field("Content-Encoding", "gzip"); });
  client_options chosen = trusting();
  chosen.decoded_body_bytes = 100'000;
  ask(
      std::move(routes),
      [](client web, http::server server, std::string url) -> task<> {
        const std::string got = co_await outcome_of(web.get(url + "/bomb"));
        EXPECT_EQ(got, "decoded_too_large");
        const std::string next = co_await outcome_of(web.get(url + "/"));
        EXPECT_EQ(next, "200 2 secure");
        EXPECT_EQ(server.http2().connections, 1u);
      },
      chosen);
}

// RFC 9113, 9.2.2: TLS 1.2 with the ciphers of the default.
TEST_P(client_http2_secure, by_tls_1_2) {
  tls_options self = shown();
  self.max_version = tls_version::v1_2;
  ask(
      some_routes(),
      [](client web, http::server, std::string url) -> task<> {
        const std::string got = co_await outcome_of(web.get(url + "/"));
        EXPECT_EQ(got, "200 2 secure");
      },
      trusting(), self);
}

TEST_P(client_http2_secure, is_not_spoken_if_one_of_both_does_not) {
  client_options not_mine = trusting();
  not_mine.http2.is_on = false;
  http::server_options not_its;
  not_its.http2.is_on = false;
  const asking by_1 = [](client web, http::server server, std::string url) -> task<> {
    for (int i = 0; i < 3; ++i) {
      const std::string got = co_await outcome_of(web.get(url + "/"));
      EXPECT_EQ(got, "200 1 secure");
    }
    EXPECT_EQ(server.http2().connections, 0u);
  };
  ask(some_routes(), by_1, not_mine);
  ask(some_routes(), by_1, trusting(), shown(), not_its);
}

TROUPE_HTTP_TEST_EACH(client_http2_secure);

}  // namespace
}  // namespace troupe::test

#endif
