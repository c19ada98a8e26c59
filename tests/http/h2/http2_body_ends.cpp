// The end of a body over HTTP/2, which needs no window.
#if __has_include(<nghttp2/nghttp2.h>)

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "http/client/h2_server.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http2_body_ends : public http_conformance {};

constexpr int initial_window_size = 4;
// The greeting of a client that gives streams so many bytes of a window.
std::string hello_with(std::uint32_t window) {
  return h2::magic + h2::settings_of({{initial_window_size, window}});
}

// Each way in which a server ends a body of exactly the bytes of the window.
struct body_form {
  const char* name;
  std::uint32_t bytes;
  std::function<response(const file& large)> answer;
};

std::vector<body_form> body_forms() {
  const auto ten = [](http::body_writer& to) -> task<> { co_await to.write("0123456789"); };
  return {
      {"a text", 10, [](const file&) { return response::text("0123456789"); }},
      {"a stream", 10, [ten](const file&) { return response::stream("text/plain", ten); }},
      {"a stream in pieces", 10,
       [](const file&) {
         return response::stream("text/plain", [](http::body_writer& to) -> task<> {
           co_await to.write("01234");
           co_await to.write("56789");
           co_await sleep_for(1ms);
         });
       }},
      {"a stream with a trailer", 10,
       [](const file&) {
         return response::stream("text/plain", [](http::body_writer& to) -> task<> {
           co_await to.write("0123456789");
           to.trailer("Lines", "1");
         });
       }},
      {"an event stream", 13,
       [](const file&) {
         return response::events([](http::event_writer& to) -> task<> {
           co_await to.send("hello");  // "data: hello\n\n"
         });
       }},
      {"an empty stream", 0,
       [](const file&) {
         return response::stream("text/plain", [](http::body_writer&) -> task<> { co_return; });
       }},
      {"a large file", 65'535,
       [](const file& large) { return response::file(large, 0, 65'535, "text/plain"); }},
  };
}

TEST_P(http2_body_ends, end_stream_is_sent_at_a_window_of_zero) {
  for (const body_form& form : body_forms()) {
    const scratch folder;
    const std::string path = folder.put("file", std::string(100'000, 'x'));
    router routes;
    routes.get("/", [&form, path]() -> task<response> {
      const file large = co_await file::open(path);
      co_return form.answer(large);
    });
    h2::answer got;
    run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
      const std::unique_ptr<h2::peer> one =
          co_await h2::peer::connect(at, hello_with(form.bytes) + h2::ask(1, h2::get("/")));
      task<h2::answer> answering = one->answer_to(1);
      got = co_await std::move(answering).timeout(20s);
    });
    EXPECT_EQ(got.status, "200") << form.name;
    EXPECT_EQ(got.body.size(), form.bytes) << form.name;
    EXPECT_TRUE(got.is_complete) << form.name;
    EXPECT_EQ(got.trailer.empty(), std::string(form.name) != "a stream with a trailer")
        << form.name;
  }
}

// The window of the whole connection is 0 as well, for another stream has used it up.
TEST_P(http2_body_ends, end_stream_is_sent_when_the_connection_has_no_window) {
  event full;
  router routes;
  routes.get("/large", [] { return response::text(std::string(100'000, 'x')); });
  routes.get("/", [full] {
    return response::stream("text/plain",
                            [full](http::body_writer&) -> task<> { co_await full.wait(); });
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    const std::unique_ptr<h2::peer> one = co_await h2::peer::connect(
        at, hello_with(1'000'000) + h2::ask(1, h2::get("/")) + h2::ask(3, h2::get("/large")));
    for (std::size_t bytes = 0; bytes < 65'535;) {
      const auto some = co_await one->next_of(h2::data);
      if (!some) break;
      bytes += some->payload.size();
    }
    full.set();
    const auto last = co_await one->next_of(h2::data, h2::end_stream);
    EXPECT_EQ(last ? last->stream : 0, 1);
  });
}

// ---- the client ----

class client_http2_body_ends : public h2::peer_conformance {};

// Reads a request's body to its end; false if it does not end.
task<bool> has_ended(h2::peer& from, std::int32_t stream, std::string& body) {
  for (;;) {
    const auto one = co_await from.next();
    if (!one) co_return false;
    if (one->stream != stream) continue;
    if (one->type == h2::data) body += one->payload;
    if ((one->type == h2::data || one->type == h2::headers) && (one->flags & h2::end_stream) != 0)
      co_return true;
  }
}

struct upload_form {
  const char* name;
  std::uint32_t bytes;
  std::function<void(http::client_request&)> give;
};

std::vector<upload_form> upload_forms() {
  return {
      {"a text", 10, [](http::client_request& to) { to.body("0123456789", "text/plain"); }},
      {"a function", 10,
       [](http::client_request& to) {
         to.body([](http::upload& out) -> task<> { co_await out.write("0123456789"); },
                 "text/plain");
       }},
      {"a function that ends later", 10,
       [](http::client_request& to) {
         to.body(
             [](http::upload& out) -> task<> {
               co_await out.write("0123456789");
               co_await sleep_for(5ms);
             },
             "text/plain");
       }},
      {"a function with a trailer", 10,
       [](http::client_request& to) {
         to.body(
             [](http::upload& out) -> task<> {
               co_await out.write("0123456789");
               out.trailer("Lines", "1");
             },
             "text/plain");
       }},
      {"a function without a piece", 0,
       [](http::client_request& to) {
         to.body([](http::upload&) -> task<> { co_return; }, "text/plain");
       }},
  };
}

TEST_P(client_http2_body_ends, end_stream_is_sent_at_a_window_of_zero) {
  for (const upload_form& form : upload_forms()) {
    bool ended = false;
    std::string body, got;
    run(
        [&](h2::told_peer& one) -> task<> {
          one.first = h2::settings_of({{initial_window_size, form.bytes}});
          const std::int32_t stream = co_await one.next_request();
          task<bool> ending = has_ended(one.frames(), stream, body);
          ended = co_await std::move(ending);
          co_await one.send(h2::answer_of(stream, "fine"));
          co_await one.next_request();
        },
        [&](h2::scripted_peer& server, http::client web) -> task<> {
          http::client_request asked("POST", server.url());
          form.give(asked);
          got = co_await fetch(web.send(std::move(asked)).timeout(20s));
        });
    EXPECT_TRUE(ended) << form.name;
    EXPECT_EQ(body.size(), form.bytes) << form.name;
    EXPECT_EQ(got, "200 fine") << form.name;
  }
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http2_body_ends);
TROUPE_CLIENT_TEST_EACH(client_http2_body_ends);

}  // namespace troupe::test

#endif
