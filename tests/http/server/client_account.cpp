// What a client keeps of answers that were not read is counted, and bounded for each origin
// (docs/protocols/accounts.md).
#include <string>
#include <vector>

#include "support/http.hpp"
#include "troupe/http/client.hpp"

namespace troupe::test {
namespace {

using http::client_error;
using http::client_failure;
using http::client_options;
using http::client_response;
using http::response;
using http::router;

constexpr std::size_t body_bytes = 200 * 1024;
constexpr std::size_t count = 16;

class client_account : public http_conformance {
 protected:
  // Answers "/" with body_bytes, and "/large" with 4 MiB.
  static router routes() {
    router all;
    all.get("/", [] { return response::text(std::string(body_bytes, 'x')); });
    all.get("/large", [] { return response::text(std::string(std::size_t{4} << 20, 'x')); });
    return all;
  }
  static client_options frugal(bool by_http2) {
    client_options chosen;
    chosen.http2_prior_knowledge = by_http2;
    chosen.buffer_bytes = std::size_t{1} << 20;
    chosen.buffer_bytes_per_origin = std::size_t{1} << 20;
    return chosen;
  }
  static task<std::string> end_of(client_response& from) {
    try {
      const std::string all = co_await from.read_all();
      co_return std::to_string(all.size());
    } catch (const client_error& e) {
      co_return e.reason() == client_failure::too_much_kept ? "too much kept" : e.what();
    }
  }
};

TEST_P(client_account, the_largest_answers_end_when_none_is_read) {
  run(routes(), [](runtime&, http::server, endpoint at) -> task<> {
    const std::string where = "http://" + at.to_string() + "/";
    const http::client asks(frugal(true));
    std::vector<client_response> answers;
    for (std::size_t i = 0; i < count; ++i) {
      client_response answer = co_await asks.get(where);
      answers.push_back(std::move(answer));
    }
    co_await sleep_for(std::chrono::milliseconds(50));
    std::size_t ended = 0, whole = 0;
    for (client_response& answer : answers) {
      task<std::string> reads = end_of(answer);
      const std::string how = co_await std::move(reads);
      ended += how == "too much kept" ? 1 : 0;
      whole += how == std::to_string(body_bytes) ? 1 : 0;
      EXPECT_TRUE(how == "too much kept" || how == std::to_string(body_bytes)) << how;
    }
    // One MiB has room for five of them; nothing ends that is small or is read in time.
    EXPECT_GE(whole, 1u);
    EXPECT_EQ(ended + whole, count);
    client_response later = co_await asks.get(where);
    task<std::string> reads = end_of(later);
    const std::string how = co_await std::move(reads);
    EXPECT_EQ(how, std::to_string(body_bytes));
  });
}

TEST_P(client_account, what_read_all_collects_is_counted) {
  run(routes(), [](runtime&, http::server, endpoint at) -> task<> {
    const std::string where = "http://" + at.to_string() + "/large";
    for (const bool by_http2 : {false, true}) {
      const http::client asks(frugal(by_http2));
      client_response collected = co_await asks.get(where);
      task<std::string> reads = end_of(collected);
      const std::string how = co_await std::move(reads);
      EXPECT_EQ(how, "too much kept");
      client_response in_pieces = co_await asks.get(where);
      std::size_t bytes = 0;
      for (;;) {
        const std::string_view piece = co_await in_pieces.read();
        if (piece.empty()) break;
        bytes += piece.size();
      }
      EXPECT_EQ(bytes, std::size_t{4} << 20);
    }
  });
}

TEST_P(client_account, a_client_without_room_is_refused) {
  client_options chosen;
  chosen.buffer_bytes = 1000;
  EXPECT_THROW(http::client{chosen}, option_error);
}

TROUPE_HTTP_TEST_EACH(client_account);

}  // namespace
}  // namespace troupe::test
