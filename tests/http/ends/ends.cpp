// How a client sees the end of an answer: TLS announces it, and a connection that is cut off does
// not.
#include <filesystem>
#include <optional>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "tls/certificates.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http_ends : public http_conformance {
 protected:
  // What the server sends for these bytes, and how the stream has ended.
  struct outcome {
    std::string got, end;
  };
  outcome ask(router routes, std::string bytes, bool secret, std::function<void()> meanwhile = {}) {
    static const authority root("the authority");
    static const identity own = root.issue();
    tls_options trust;
    trust.ca_pem = root.certificate();
    const tls_context server = tls_context::server(showing(own)),
                      client = tls_context::client(trust);
    outcome made;
    auto both = [&](runtime& runs) -> task<> {
      http::server web(std::move(routes));
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      future<> serving = secret ? runs.spawn(web.serve(std::move(listener), server))
                                : runs.spawn(web.serve(std::move(listener)));
      tcp_stream plain = co_await tcp_stream::connect(at);
      if (secret) {
        tls_stream peer = tls_stream::client(client, std::move(plain), "good.test");
        co_await peer.handshake();
        co_await exchange_on(peer, bytes, made, meanwhile);
      } else {
        co_await exchange_on(plain, bytes, made, meanwhile);
      }
      web.stop();
      co_await std::move(serving);
    };
    runtime rt(options());
    rt.spawn(both(rt));
    rt.run();
    return made;
  }

 private:
  template <class Stream>
  static task<> exchange_on(Stream& peer, std::string_view bytes, outcome& to,
                            std::function<void()>& meanwhile) {
    co_await peer.write_all(bytes);
    std::array<char, 4096> part;
    to.end = "declared";
    try {
      for (;;) {
        const std::size_t came = co_await peer.read(part);
        if (came == 0) break;
        to.got.append(part.data(), came);
        if (meanwhile) std::exchange(meanwhile, nullptr)();
      }
    } catch (const tls_error& e) {
      to.end = e.reason() == tls_failure::truncated ? "truncated" : e.what();
    } catch (const io_error& e) {
      to.end = e.what();
    }
  }
};

router some_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/stream", [] {
    return response::stream("text/plain",
                            [](http::body_writer& to) -> task<> { co_await to.write("words"); });
  });
  return routes;
}

TEST_P(http_ends, are_declared_over_tls) {
  for (const char* asked :
       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /stream HTTP/1.0\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "nonsense\r\n\r\n"}) {
    EXPECT_EQ(ask(some_routes(), asked, true).end, "declared") << asked;
  }
}

// Without TLS only the length, or the missing last chunk, shows that the answer was cut off.
TEST_P(http_ends, of_a_file_that_is_shortened_come_before_its_length) {
  constexpr std::size_t bytes = 20'000'000;
  for (const bool secret : {false, true}) {
    const scratch folder;
    const std::string path = folder.put("large", std::string(bytes, 'x'));
    router routes;
    routes.get("/", [path]() -> task<response> {
      const file from = co_await file::open(path);
      co_return response::file(from, 0, bytes, "text/plain");
    });
    const outcome what = ask(std::move(routes), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", secret,
                             [&] { std::filesystem::resize_file(path, bytes / 2); });
    EXPECT_TRUE(what.got.starts_with("HTTP/1.1 200 OK")) << what.got.substr(0, 100);
    EXPECT_LT(what.got.size(), bytes);
    EXPECT_EQ(what.got.find_first_not_of('x', what.got.find("\r\n\r\n") + 4), std::string::npos);
  }
}

}  // namespace

// The peer has no part in this failure, so run() reports it, over TLS or not.
TEST_P(http_ends, a_file_that_cannot_be_read_is_a_failure_of_its_handler) {
  for (const bool secret : {false, true}) {
    router routes;
    routes.get("/", []() -> task<response> {
      const file folder = co_await file::open("/");
      co_return response::file(folder, 0, 1'000'000, "text/plain");
    });
    EXPECT_THROW(ask(std::move(routes), "GET / HTTP/1.1\r\nHost: a\r\n\r\n", secret), io_error)
        << secret;
  }
}

TROUPE_HTTP_TEST_EACH(http_ends);

}  // namespace troupe::test
