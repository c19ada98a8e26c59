// request::client(): the client behind the proxies that the server trusts.
#include "support/http.hpp"
#include "troupe/http/around/limits.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::string_literals;

class http_forwarded : public http_conformance {};

router client_routes() {
  router routes;
  routes.get("/", [](const request& asked) {
    const auto client = asked.client();
    return response::text(client ? client->to_string() : "none");
  });
  return routes;
}

std::string asking(const std::string& lines) {
  return "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + lines + "\r\n";
}
std::string body_of(const std::string& got) {
  return got.substr(std::min(got.size(), got.find("\r\n\r\n") + 4));
}

TEST_P(http_forwarded, names_the_client_that_a_trusted_proxy_says) {
  server_options options;
  options.trusted_proxies = {"127.0.0.0/8", "10.0.0.0/8"};
  const std::string spoofed = "X-Forwarded-For: 198.51.100.1, 192.0.2.1, 10.0.0.2\r\n";
  EXPECT_EQ(body_of(answer_to(client_routes(), asking(spoofed), options)), "192.0.2.1:0");
  const std::string other = "Forwarded: for=198.51.100.1\r\n";
  EXPECT_EQ(body_of(answer_to(client_routes(), asking(other + spoofed), options)), "192.0.2.1:0");
  options.forwarded_by = http::forwarded_field::forwarded;
  const std::string got = body_of(answer_to(client_routes(), asking(spoofed), options));
  EXPECT_TRUE(got.starts_with("127.0.0.1:")) << got;
  EXPECT_EQ(body_of(answer_to(client_routes(), asking(spoofed + other), options)),
            "198.51.100.1:0");
}

TEST_P(http_forwarded, is_ignored_from_others) {
  server_options options;
  options.trusted_proxies = {"10.0.0.0/8"};
  for (const server_options& each : {server_options(), options}) {
    const std::string got =
        body_of(answer_to(client_routes(), asking("X-Forwarded-For: 192.0.2.1\r\n"), each));
    EXPECT_TRUE(got.starts_with("127.0.0.1:")) << got;
  }
}

// The client of the PROXY protocol is the peer, whose word counts only if it is trusted.
TEST_P(http_forwarded, is_judged_by_the_client_of_the_proxy_protocol) {
  server_options options;
  options.proxy_protocol.from = {"127.0.0.1"};
  options.trusted_proxies = {"192.0.2.1"};
  const std::string lines = asking("X-Forwarded-For: 198.51.100.1\r\n");
  EXPECT_EQ(body_of(answer_to(client_routes(), "PROXY TCP4 192.0.2.1 10.0.0.1 5 443\r\n" + lines,
                              options)),
            "198.51.100.1:0");
  EXPECT_EQ(body_of(answer_to(client_routes(), "PROXY TCP4 192.0.2.2 10.0.0.1 5 443\r\n" + lines,
                              options)),
            "192.0.2.2:5");
}

// Rates are limited by it, so that the clients of one proxy are not one.
TEST_P(http_forwarded, is_what_rates_are_limited_by) {
  server_options options;
  options.trusted_proxies = {"127.0.0.1"};
  router routes = client_routes();
  routes.around(http::rate_per({.tokens = 1, .per = std::chrono::hours(1)}));
  std::string got;
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        for (const char* from : {"192.0.2.1", "192.0.2.2", "192.0.2.1"})
          got += (co_await exchange(at, asking("X-Forwarded-For: "s + from + "\r\n"))).substr(9, 4);
      },
      options);
  EXPECT_EQ(got, "200 200 429 ");
}

// A host can use a whole network of IPv6.
TEST_P(http_forwarded, rates_hold_for_networks_of_ipv6) {
  server_options options;
  options.trusted_proxies = {"127.0.0.1"};
  router routes = client_routes();
  routes.around(http::rate_per({.tokens = 1, .per = std::chrono::hours(1)}));
  std::string got;
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        for (const char* from : {"2001:db8::1", "2001:db8::7:1", "2001:db8:0:1::1", "192.0.2.1",
                                 "::ffff:192.0.2.1", "::ffff:192.0.2.2", "fe80::1", "fe80::2"})
          got += (co_await exchange(at, asking("X-Forwarded-For: "s + from + "\r\n"))).substr(9, 4);
      },
      options);
  EXPECT_EQ(got, "200 429 200 200 429 200 200 200 ");
}

TROUPE_HTTP_TEST_EACH(http_forwarded);

}  // namespace
}  // namespace troupe::test
