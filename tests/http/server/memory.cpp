// The memory of a request: this_context() in handlers. It does not grow with the number of
// requests, and stays for what a failure refers to.
#include <memory_resource>

#include "support/counted.hpp"
#include "support/http.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;

class http_memory : public http_conformance {};

const std::string last = "Connection: close\r\n";
std::string get(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::string_view letters(context& in, std::size_t count) {
  return *in.make<std::pmr::string>(count, 'x');
}

TEST_P(http_memory, handlers_have_a_context_and_answers_may_lie_there) {
  router routes;
  routes.get("/", [](const request& asked) {
    static_cast<void>(this_context().make<counted>());
    if (&asked.memory() != &this_context()) return response::text("another context");
    return response::view(letters(this_context(), 10'000), "text/plain");
  });
  routes.get("/later", [](const request& asked) -> task<response> {
    const std::string_view text = letters(asked.memory(), 20'000);
    co_await sleep_for(1ms);
    static_cast<void>(asked.memory().make<counted>());
    co_return response::view(text, "text/plain");
  });
  EXPECT_EQ(body_of(answer_to(std::move(routes), get("/", last))), std::string(10'000, 'x'));
  EXPECT_EQ(live.load(), 0);
}

TEST_P(http_memory, stays_flat_over_many_requests_of_one_connection) {
  const auto before = count_contexts();
  std::atomic<std::int64_t> most{0};
  router routes;
  routes.get("/", [&most](const request&) {
    static_cast<void>(this_context().make<counted>());
    static_cast<void>(this_context().allocate(200'000));
    most = std::max(most.load(), static_cast<std::int64_t>(this_context().bytes()));
    return response::text("ok");
  });
  routes.get("/later", [&most](const request& asked) -> task<response> {
    static_cast<void>(asked.memory().allocate(200'000));
    co_await yield();
    most = std::max(most.load(), static_cast<std::int64_t>(asked.memory().bytes()));
    co_return response::text("ok");
  });
  std::string all;
  for (int i = 0; i < fewer(400); ++i) all += get("/") + get("/later");
  const std::string got = answer_to(std::move(routes), all + get("/", last));
  std::size_t answers = 0;
  for (std::size_t at = got.find("HTTP/1.1 200"); at != std::string::npos;
       at = got.find("HTTP/1.1 200", at + 1))
    ++answers;
  EXPECT_EQ(answers, static_cast<std::size_t>(2 * fewer(400) + 1));
  EXPECT_LE(most.load(), std::int64_t{1} << 20);
  EXPECT_EQ(live.load(), 0);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
  EXPECT_EQ(count_contexts().active, before.active);
}

struct lying_in_context : std::exception {
  explicit lying_in_context(std::string_view of) : text(of) {}
  const char* what() const noexcept override { return text.data(); }
  std::string_view text;
};

TEST_P(http_memory, what_a_failure_refers_to_stays_until_it_was_delivered) {
  runtime rt(options());
  for (const std::string path : {"/", "/later"}) {
    router routes;
    routes.get("/", [](const request&) -> response {
      throw lying_in_context(letters(this_context(), 5'000));
    });
    routes.get("/later", [](const request& asked) -> task<response> {
      const std::string_view text = letters(asked.memory(), 5'000);
      co_await yield();
      throw lying_in_context(text);
    });
    std::string got;
    rt.spawn(serve_while(rt, http::server(std::move(routes)),
                         [&](runtime&, http::server, endpoint at) -> task<> {
                           got = co_await exchange(at, get(path));
                         }));
    try {
      rt.run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const lying_in_context& error) {
      EXPECT_EQ(error.text, std::string(5'000, 'x'));
    }
    EXPECT_NE(got.find("500"), std::string::npos);
    rt.run();
  }
}

// A client that can make a handler throw could otherwise fill the memory of a server that is never
// stopped.
TEST_P(http_memory, handlers_that_throw_again_and_again_keep_it_flat) {
  runtime_options chosen = options();
  chosen.failures_kept = 20;
  chosen.failure_lines = 0;
  const int count = fewer(1'000);
  const auto before = count_contexts();
  {
    runtime rt(chosen);
    router routes;
    routes.get("/", [](const request&) -> response {
      throw lying_in_context(letters(this_context(), 5'000));
    });
    rt.spawn(serve_while(rt, http::server(std::move(routes)),
                         [&](runtime&, http::server, endpoint at) -> task<> {
                           for (int i = 0; i < count; ++i) {
                             const std::string got = co_await exchange(at, get("/"));
                             if (got.find("500") == std::string::npos) ADD_FAILURE() << got;
                           }
                         }));
    EXPECT_THROW(rt.run(), lying_in_context);
    const runtime_metrics now = rt.metrics();
    EXPECT_EQ(now.failures, static_cast<std::uint64_t>(count));
    EXPECT_EQ(now.failures_kept, 19u);
    EXPECT_EQ(now.failures_dropped, static_cast<std::uint64_t>(count) - 20);
    EXPECT_LE(now.failure_bytes, chosen.failure_bytes);
    EXPECT_LE(count_contexts().active - before.active, 21)
        << "those that are kept, and the one that was thrown";
  }
  EXPECT_EQ(count_contexts().active, before.active);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

TROUPE_HTTP_TEST_EACH(http_memory);

}  // namespace
}  // namespace troupe::test
