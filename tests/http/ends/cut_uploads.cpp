// A client that goes in the middle of its request has gone, whether it ends its connection by FIN
// or by RST, and over TLS or not: request::read() throws the same.
#include <string>
#include <string_view>

#include "support/http.hpp"
#include "troupe/http/fault.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class http_cut_uploads : public http_conformance {};

// What read() has thrown, and its verdict.
struct thrown {
  std::string what;
  verdict judged;
  event told;
};

http::router reading(thrown& to) {
  http::router routes;
  routes.post("/", [&to](http::request& asked) -> task<http::response> {
    try {
      for (;;) {
        const std::string_view piece = co_await asked.read();
        if (piece.empty()) break;
      }
      to.what = "nothing";
    } catch (const http::refused& e) {
      to.what = e.what();
      to.judged = e.judged();
    } catch (const std::exception& e) {
      to.what = std::string("another: ") + e.what();
    }
    to.told.set();
    co_return http::response();
  });
  return routes;
}

TEST_P(http_cut_uploads, are_the_same_by_fin_and_by_rst) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n";
  for (const bool resets : {false, true}) {
    thrown seen;
    run(reading(seen), [&](runtime&, http::server, endpoint at) -> task<> {
      {
        tcp_stream peer = co_await tcp_stream::connect(at);
        // What it leaves unread makes a reset of its end.
        const std::string asked = head + (resets ? "Expect: 100-continue\r\n\r\n" : "\r\na part");
        co_await peer.write_all(asked);
        if (resets) co_await sleep_for(20ms);
      }
      co_await seen.told.wait();
    });
    EXPECT_EQ(seen.what, http::refused(http::fault::truncated).what()) << resets;
    EXPECT_EQ(seen.judged.fault, verdict::party::peer) << resets;
  }
}

TROUPE_HTTP_TEST_EACH(http_cut_uploads);

}  // namespace
}  // namespace troupe::test
