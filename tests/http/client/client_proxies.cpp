// A client asks through proxies, and tells targets nothing that is for the proxy.
#include "http/client/small_proxy.hpp"
#include "troupe/http/server.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::client_request;

class http_client_proxies : public client_conformance {
 protected:
  using proxied = task<> (*)(scripted_server& server, small_proxy& proxy);
  // The server answers with the request.
  void meet(proxied what, std::optional<tls_context> self = {}, std::string wants = "") {
    const int before = open_files();
    {
      scripted_server server(
          [](const std::string& request) -> scripted_answer { return with_length(request); });
      small_proxy proxy;
      proxy.wants = std::move(wants);
      runtime rt(options());
      const auto both = [&](proxied does) -> task<> {
        if (self) {
          server.start(rt, *self);
        } else {
          server.start(rt);
        }
        proxy.start(rt);
        co_await does(server, proxy);
      };
      rt.spawn(both(what));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
};

authority& trusted() {
  static authority is("the authority");
  return is;
}
tls_context localhost() {
  return tls_context::server(showing(trusted().issue({.names = "DNS:localhost"})));
}

TEST_P(http_client_proxies, read_requests_of_http_in_the_absolute_form) {
  meet(
      [](scripted_server& server, small_proxy& proxy) -> task<> {
        client_options chosen;
        chosen.proxies.http = "http://ada:1%3a2@" + proxy.authority();
        const client web(chosen);
        client_request asked("GET", server.url("/x?y"));
        asked.field("Proxy-Authorization", "of the caller");
        const std::string got = co_await fetch(web.send(std::move(asked)));
        const std::string wanted = "200 proxied GET " + server.url("/x?y") +
                                   " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                                   "\r\nProxy-Authorization: Basic YWRhOjE6Mg==\r\n" +
                                   "User-Agent: troupe\r\n\r\n";
        EXPECT_EQ(got, wanted);
        // Connections to the proxy serve all origins.
        const std::string other = co_await fetch(web.get("http://a.invalid/"));
        EXPECT_TRUE(
            other.starts_with("200 proxied GET http://a.invalid/ HTTP/1.1\r\nHost: a.inva"));
        EXPECT_EQ(web.idle(), 1u);
        EXPECT_EQ(server.connections(), 0);
        web.close_idle();
      },
      {}, "Basic YWRhOjE6Mg==");
}

TEST_P(http_client_proxies, open_tunnels_for_https) {
  meet(
      [](scripted_server& server, small_proxy& proxy) -> task<> {
        client_options chosen;
        chosen.tls.ca_pem = trusted().certificate();
        chosen.proxies.https = "ada@" + proxy.authority();
        const client web(chosen);
        for (int i = 0; i < 2; ++i) {
          client_request asked("GET", server.url("/x"));
          asked.field("Proxy-Authorization", "secret").field("Proxy-Connection", "secret");
          const std::string got = co_await fetch(web.send(std::move(asked)));
          EXPECT_TRUE(got.starts_with("200 GET /x HTTP/1.1\r\nHost: localhost:")) << got;
          EXPECT_FALSE(got.contains("Proxy") || got.contains("secret")) << got;
        }
        const std::string target = "localhost:" + std::to_string(server.port());
        const std::vector<std::string> heads = proxy.heads();
        EXPECT_EQ(heads.size(), 1u);
        EXPECT_EQ(heads[0], "CONNECT " + target + " HTTP/1.1\r\nHost: " + target +
                                "\r\nProxy-Authorization: Basic YWRhOg==\r\n\r\n");
        web.close_idle();
      },
      localhost(), "Basic YWRhOg==");
}

// The proxy is no party of the connection: it cannot show a certificate of its own.
TEST_P(http_client_proxies, do_not_come_between_client_and_certificate) {
  meet(
      [](scripted_server& server, small_proxy& proxy) -> task<> {
        client_options chosen;
        chosen.proxies.all = proxy.authority();
        const std::string got = co_await outcome_of(client(chosen).get(server.url()));
        EXPECT_EQ(got, "tls_error");
      },
      localhost());
}

TEST_P(http_client_proxies, are_left_out_for_some_targets) {
  meet([](scripted_server& server, small_proxy& proxy) -> task<> {
    client_options chosen;
    chosen.proxies.all = proxy.authority();
    chosen.proxies.none = "127.0.0.0/8";
    const client web(chosen);
    client_request asked("GET", server.url("/direct"));
    asked.field("Proxy-Authorization", "secret");
    const std::string got = co_await fetch(web.send(std::move(asked)));
    EXPECT_TRUE(got.starts_with("200 GET /direct HTTP/1.1\r\n")) << got;
    EXPECT_FALSE(got.contains("Proxy")) << got;
    EXPECT_TRUE(proxy.heads().empty());
    web.close_idle();
  });
}

TEST_P(http_client_proxies, that_refuse_are_named) {
  meet(
      [](scripted_server& server, small_proxy& proxy) -> task<> {
        client_options chosen;
        chosen.proxies.all = proxy.authority();
        const client web(chosen);
        for (const std::string& url : {server.url(), std::string("https://localhost/")}) {
          int status = 0;
          std::string text;
          try {
            co_await fetch(web.get(url));
          } catch (const http::client_error& e) {
            EXPECT_EQ(e.reason(), http::client_failure::proxy_refused);
            status = e.status();
            text = e.what();
          }
          EXPECT_EQ(status, 407);
          EXPECT_TRUE(text.contains("407") && text.contains("proxies")) << text;
        }
        web.close_idle();
      },
      {}, "Basic YWRhOg==");
}

TEST_P(http_client_proxies, that_answer_badly_are_refused) {
  meet([](scripted_server&, small_proxy& proxy) -> task<> {
    client_options chosen;
    chosen.proxies.https = proxy.authority();
    for (const char* answer :
         {"HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 302 There\r\nLocation: http://a/\r\n\r\n",
          "SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 403 No\r\n\r\n"}) {
      proxy.says_to_connect = answer;
      const std::string got = co_await outcome_of(client(chosen).get("https://localhost:1/"));
      EXPECT_EQ(got, "proxy_refused") << answer;
    }
    auto closed = tcp_listener::listen(endpoint::loopback(0));
    chosen.proxies.all = "127.0.0.1:" + std::to_string(closed.local().port());
    closed.close();
    chosen.proxies.https = "";
    for (const char* url : {"https://localhost:1/", "http://localhost:1/"}) {
      const std::string got = co_await outcome_of(client(chosen).get(url));
      EXPECT_EQ(got, "proxy_unreachable");
    }
  });
}

TEST_P(http_client_proxies, that_stay_silent_use_up_the_time_to_connect) {
  meet([](scripted_server&, small_proxy&) -> task<> {
    listen_options weak;
    weak.weak = true;
    auto silent = tcp_listener::listen(endpoint::loopback(0), weak);
    client_options chosen;
    chosen.proxies.https = "127.0.0.1:" + std::to_string(silent.local().port());
    chosen.connect_time = 20ms;
    const std::string got = co_await outcome_of(client(chosen).get("https://localhost:1/"));
    EXPECT_EQ(got, "timed_out");
    chosen.connect_time = 60s;
    const client web(chosen);
    const auto ask = [&]() -> task<> { co_await fetch(web.get("https://localhost:1/")); };
    bool late = false;
    try {
      co_await with_deadline(20ms, ask());
    } catch (const timed_out&) {
      late = true;
    }
    EXPECT_TRUE(late);
  });
}

TEST_P(http_client_proxies, carry_websockets_through_a_tunnel) {
  http::router routes;
  routes.get("/echo", [] {
    return http::response::websocket([](http::websocket& peer) -> task<> {
      while (const auto said = co_await peer.receive()) co_await peer.send(std::string(said->data));
    });
  });
  http::server web(std::move(routes));
  small_proxy proxy;
  runtime rt(options());
  const auto talk = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string target = "127.0.0.1:" + std::to_string(listener.local().port());
    future<> serving = spawn(web.serve(std::move(listener)));
    proxy.start(rt);
    client_options chosen;
    chosen.proxies.all = proxy.authority();
    {
      const auto peer = co_await client(chosen).websocket("ws://" + target + "/echo");
      co_await peer->send("hello");
      const auto said = co_await peer->receive();
      EXPECT_EQ(said->data, "hello");
      co_await peer->close();
    }
    EXPECT_TRUE(proxy.heads()[0].starts_with("CONNECT " + target + " ")) << proxy.heads()[0];
    web.stop();
    co_await std::move(serving);
  };
  rt.spawn(talk());
  rt.run();
}

TROUPE_CLIENT_TEST_EACH(http_client_proxies);

}  // namespace
}  // namespace troupe::test
