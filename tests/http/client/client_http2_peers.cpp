// The client of HTTP/2 against servers of other projects: nghttpd and nginx.
#if __has_include(<nghttp2/nghttp2.h>)

#include <filesystem>

#include "http/client/http2_client.hpp"
#include "support/scratch.hpp"
#include "support/servers/server_process.hpp"
#include "tls/certificates.hpp"

namespace troupe::test {
namespace {

using http::client;
using http::client_options;
using http::client_response;

constexpr const char *nghttpd = "/usr/sbin/nghttpd", *nginx = "/usr/sbin/nginx";

class client_http2_peers : public io_conformance {
 protected:
  using asking = std::function<task<>(client web)>;
  void ask(asking what, client_options chosen) {
    runtime rt(options());
    const auto both = [&](client web) -> task<> {
      task<> asked = what(web);
      co_await std::move(asked);
      web.close_idle();
    };
    rt.spawn(both(client(std::move(chosen))));
    rt.run();
  }

  client_options trusting() const {
    client_options chosen;
    chosen.http2_prior_knowledge = true;
    chosen.tls.ca_pem = trusted_.certificate();
    return chosen;
  }
  // Files that a server shows, its certificate and its key.
  std::string folder() {
    const identity own = trusted_.issue({.names = "DNS:localhost"});
    files_.put("certificate", own.certificate);
    files_.put("key", own.key);
    files_.put("small", "small");
    files_.put("large", std::string(5'000'000, 'x'));
    return files_ / "";
  }

  const authority trusted_{"the authority"};
  scratch files_;
};

task<> count_good(client web, std::string url, std::size_t& good) {
  std::string got;
  try {
    got = co_await fetch(web.get(url));
  } catch (const error& e) {
    got = e.what();
  }
  EXPECT_EQ(got, "200 small");
  good += got == "200 small";
}

task<std::size_t> ask_many(client web, std::string url, std::size_t requests) {
  std::size_t good = 0;
  const auto body = [&](task_scope& in) -> task<> {
    for (std::size_t i = 0; i < requests; ++i) in.spawn(count_good(web, url, good));
    co_return;
  };
  co_await scope(body);
  co_return good;
}

TEST_P(client_http2_peers, nghttpd) {
  if (!std::filesystem::exists(nghttpd)) GTEST_SKIP() << "needs nghttpd";
  const std::string root = folder();
  for (const bool secure : {false, true}) {
    const server_process peer([&](int port) {
      std::vector<std::string> all{
          nghttpd, "-a", "127.0.0.1",         "-d", root, "--trailer", "sum: 7", "--echo-upload",
          "-m",    "10", std::to_string(port)};
      if (secure) {
        all.push_back(root + "key");
        all.push_back(root + "certificate");
      } else {
        all.insert(all.end() - 1, "--no-tls");
      }
      return all;
    });
    const std::string url =
        (secure ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(peer.port());
    ask(
        [&](client web) -> task<> {
          client_response small = co_await web.get(url + "/small");
          const std::string text = co_await small.read_all();
          EXPECT_EQ(text, "small");
          EXPECT_EQ(small.trailer()["sum"], "7");
          EXPECT_TRUE(small.field("server").starts_with("nghttpd"));
          client_response large = co_await web.get(url + "/large");
          const std::string all = co_await large.read_all();
          EXPECT_EQ(all.size(), 5'000'000u);
          const std::string none = co_await outcome_of(web.head(url + "/large"));
          EXPECT_EQ(none, "200 ");
          const std::string sent(1'000'000, 'y');
          client_response echoed = co_await web.post(url + "/up", sent, "text/plain");
          const std::string same = co_await echoed.read_all();
          EXPECT_EQ(same, sent);
          const std::size_t good = co_await ask_many(web, url + "/small", 200);
          EXPECT_EQ(good, 200u);
          { client_response dropped = co_await web.get(url + "/large"); }
          const std::string after = co_await outcome_of(web.get(url + "/small"));
          EXPECT_EQ(after, "200 small");
        },
        trusting());
  }
}

// This nginx ends each connection by GOAWAY after 50 requests, and allows 8 at a time.
TEST_P(client_http2_peers, nginx) {
  if (!std::filesystem::exists(nginx)) GTEST_SKIP() << "needs nginx";
  const std::string root = folder();
  for (const bool secure : {false, true}) {
    const server_process peer([&](int port) {
      const std::string at = std::to_string(port);
      std::string says = "daemon off; master_process off; error_log " + root + "errors; pid " +
                         root +
                         "pid; events {} http { access_log off; keepalive_requests 50; "
                         "http2_max_concurrent_streams 8;";
      for (const char* const one : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
        says += std::string(one) + "_temp_path " + root + one + ";";
      says +=
          "server { root " + root + "; listen 127.0.0.1:" + at + (secure ? " ssl" : "") + " http2;";
      if (secure)
        says += "ssl_certificate " + root + "certificate; ssl_certificate_key " + root + "key;";
      files_.put("config", says + "}}");
      return std::vector<std::string>{nginx, "-e", root + "errors", "-c", root + "config"};
    });
    const std::string url =
        (secure ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(peer.port());
    ask(
        [&](client web) -> task<> {
          const std::size_t good = co_await ask_many(web, url + "/small", 500);
          EXPECT_EQ(good, 500u);
          for (int i = 0; i < 120; ++i) {
            const std::string got = co_await outcome_of(web.get(url + "/small"));
            EXPECT_EQ(got, "200 small");
          }
          client_response large = co_await web.get(url + "/large");
          EXPECT_TRUE(large.field("server").starts_with("nginx"));
          const std::string all = co_await large.read_all();
          EXPECT_EQ(all.size(), 5'000'000u);
          const std::string none = co_await outcome_of(web.head(url + "/large"));
          EXPECT_EQ(none, "200 ");
          // It answers before it has all of the body.
          client_response early = co_await web.post(url + "/small", std::string(500'000, 'x'), "");
          EXPECT_EQ(early.status(), 405);
        },
        trusting());
  }
}

INSTANTIATE_TEST_SUITE_P(
    backends, client_http2_peers,
    ::testing::Values(io_setting{{policy::work_stealing, 2, 1}, io_backend::epoll},
                      io_setting{{policy::work_stealing, 2, 1}, io_backend::io_uring}),
    [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test

#endif
