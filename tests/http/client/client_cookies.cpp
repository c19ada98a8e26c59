// A client with a cookie jar keeps the cookies of answers, and sends them where they belong.
#include "http/client/scripted.hpp"

namespace troupe::test {
namespace {

using http::client;
using http::client_options;
using http::client_request;
using http::cookie_jar;

authority& trusted() {
  static authority is("the authority");
  return is;
}

class http_client_cookies : public client_conformance {};

TEST_P(http_client_cookies, come_back_and_go_with_redirects) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /login "))
      return "HTTP/1.1 302 There\r\nLocation: /in/start\r\nSet-Cookie: id=7; Path=/in\r\n"
             "Set-Cookie: seen=1; Path=/\r\nContent-Length: 0\r\n\r\n";
    if (request.starts_with("GET /in/out "))
      return "HTTP/1.1 404 Not Found\r\nSet-Cookie: id=; Path=/in; Max-Age=0\r\n"
             "Content-Length: 0\r\n\r\n";
    const std::size_t begin = request.find("Cookie: ");
    if (begin == std::string::npos) return with_length("none");
    return with_length(request.substr(begin + 8, request.find('\r', begin) - begin - 8));
  };
  client_options chosen;
  chosen.cookies.emplace();
  const cookie_jar jar = *chosen.cookies;
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        const std::string login = co_await fetch(web.get(server.url("/login")));
        EXPECT_EQ(login, "200 id=7; seen=1");
        const std::string outside = co_await fetch(web.get(server.url("/")));
        EXPECT_EQ(outside, "200 seen=1");
        client_request own("GET", server.url("/in/x"));
        own.field("cookie", "own=1");
        const std::string named = co_await fetch(web.send(std::move(own)));
        EXPECT_FALSE(server.requests().back().contains("id=7")) << server.requests().back();
        co_await fetch(web.get(server.url("/in/out")));
        const std::string after = co_await fetch(web.get(server.url("/in/x")));
        EXPECT_EQ(after, "200 seen=1");
      },
      std::move(chosen));
  EXPECT_EQ(jar.size(), 1u);
}

// Cookies have no ports: 127.0.0.1 with another port is the same host. Another name of it is not.
TEST_P(http_client_cookies, of_one_site_do_not_go_to_another) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (const std::size_t to = request.find("/to?"); to != std::string::npos) {
      const std::size_t end = request.find(' ', to);
      return "HTTP/1.1 307 There\r\nLocation: " + request.substr(to + 4, end - to - 4) +
             "\r\nContent-Length: 0\r\n\r\n";
    }
    if (request.starts_with("GET /set "))
      return with_length("",
                         "Set-Cookie: s=1; SameSite=Strict\r\nSet-Cookie: l=1; SameSite=Lax\r\n"
                         "Set-Cookie: d=1\r\n");
    return with_length(request);
  };
  client_options chosen;
  chosen.cookies.emplace();
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        const std::string port = std::to_string(server.port());
        const std::string here = "http://127.0.0.1:" + port, there = "http://localhost:" + port;
        co_await fetch(web.get(here + "/set"));
        const std::string other = co_await fetch(web.get(here + "/to?" + there + "/"));
        EXPECT_FALSE(other.contains("Cookie")) << other;
        const std::string back = co_await fetch(web.get(there + "/to?" + here + "/"));
        EXPECT_TRUE(back.contains("Cookie: l=1; d=1\r\n")) << back;
        const std::string post = co_await fetch(web.post(there + "/to?" + here + "/", "x", ""));
        EXPECT_TRUE(post.contains("Cookie: d=1\r\n")) << post;
        const std::string around =
            co_await fetch(web.get(here + "/to?" + there + "/to?" + here + "/"));
        EXPECT_TRUE(around.contains("Cookie: l=1; d=1\r\n")) << around;
        const std::string same = co_await fetch(web.get(here + "/to?" + here + "/"));
        EXPECT_TRUE(same.contains("Cookie: s=1; l=1; d=1\r\n")) << same;
      },
      std::move(chosen));
}

TEST_P(http_client_cookies, of_https_are_not_sent_without_tls) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /down "))
      return "HTTP/1.1 302 There\r\nLocation: http://localhost:1/\r\nContent-Length: 0\r\n\r\n";
    if (!request.contains("Cookie: ")) return with_length("", "Set-Cookie: a=1; Secure\r\n");
    return with_length("known");
  };
  client_options chosen;
  chosen.cookies.emplace();
  chosen.tls.ca_pem = trusted().certificate();
  const cookie_jar jar = *chosen.cookies;
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        co_await fetch(web.get(server.url()));
        const std::string known = co_await fetch(web.get(server.url()));
        EXPECT_EQ(known, "200 known");
        const std::string down = co_await outcome_of(web.get(server.url("/down")));
        EXPECT_EQ(down, "insecure_redirect");
      },
      std::move(chosen), tls_context::server(showing(trusted().issue({.names = "DNS:localhost"}))));
  EXPECT_EQ(jar.size(), 1u);
  EXPECT_EQ(jar.field_for(http::url::parse("http://localhost/")), "");
}

TROUPE_CLIENT_TEST_EACH(http_client_cookies);

}  // namespace
}  // namespace troupe::test
