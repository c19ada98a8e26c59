// What the bodies and messages of HTTP give is not lost with a wait that loses
// (docs/protocols/given_up_waits.md).
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "given_up/sources.hpp"
#include "http/client/http2_client.hpp"
#include "troupe/http/values/form.hpp"
#include "troupe/http/values/json.hpp"
#include "troupe/http/values/multipart.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

constexpr int values = 1000;

char byte_of(int number) { return static_cast<char>(number % 251); }

// Pieces of one to four bytes.
template <class To>
task<> write_numbers(To& to, int count) {
  std::string piece;
  for (int i = 0; i < count; ++i) {
    piece += byte_of(i);
    if (!pauses(i)) continue;
    co_await to.write(piece);
    piece.clear();
    co_await yield();
  }
  co_await to.write(piece);
}

// The bytes of a body: what read() gives of it, and now and then a read_all() that has no time.
template <class Body>
class body_source final : public source {
 public:
  body_source(Body& from, bool collects) : from_(from), collects_(collects) {}
  void start(int) override {}
  task<std::optional<int>> next() override {
    if (rest_.empty() && !has_all_) {
      if (collects_ && ++reads_ % 3 != 0) {
        rest_ = std::string(co_await from_.read_all());
        has_all_ = true;  // a request gives all of it again
      } else {
        rest_ = std::string(co_await from_.read());
      }
    }
    if (rest_.empty()) co_return std::nullopt;
    const bool is_next = rest_.front() == byte_of(given_);
    rest_.erase(0, 1);
    co_return is_next ? given_++ : -1;
  }

 private:
  Body& from_;
  const bool collects_;
  bool has_all_ = false;
  std::string rest_;
  int reads_ = 0, given_ = 0;
};

// Part i has the name and the content i. Of each third part the content is left unread.
class parts_source final : public source {
 public:
  explicit parts_source(http::request& asked) : parts_(asked) {}
  void start(int) override {}
  task<std::optional<int>> next() override {
    if (!in_part_) {
      // It is at its end, or its content is not wanted.
      if (leaves_) co_await parts_.read();
      const bool has_more = co_await parts_.next();
      if (!has_more) co_return std::nullopt;
      text_.clear();
      leaves_ = std::stoi(parts_.part().name) % 3 == 0;
      if (leaves_) co_return std::stoi(parts_.part().name);
      in_part_ = true;
    }
    for (;;) {
      const std::string_view piece = co_await parts_.read();
      if (piece.empty()) break;
      text_ += piece;
    }
    in_part_ = false;
    co_return std::stoi(text_);
  }

 private:
  http::multipart_reader parts_;
  std::string text_;
  bool in_part_ = false, leaves_ = false;
};
template <class To>
task<> write_parts(To& to, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    const std::string begin =
        "--b\r\nContent-Disposition: form-data; name=\"" + number + "\"\r\n\r\n";
    co_await to.write(begin);
    if (pauses(i)) co_await yield();
    const std::string end = number + "\r\n";
    co_await to.write(end);
  }
  const std::string end = "--b--\r\n";
  co_await to.write(end);
}

class messages_source final : public source {
 public:
  explicit messages_source(http::websocket& from) : from_(from) {}
  void start(int) override {}
  task<std::optional<int>> next() override {
    const auto message = co_await from_.receive();
    if (!message) co_return std::nullopt;
    co_return std::stoi(std::string(message->data));
  }

 private:
  http::websocket& from_;
};
task<> send_numbers(http::websocket& to, int count) {
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    co_await to.send(std::move(number));
    if (pauses(i)) co_await yield();
  }
}

http::router routes(int count, given_up_by way) {
  http::router made;
  made.get("/numbers", [count] {
    return http::response::stream(
        "text/plain", [count](http::body_writer& to) { return write_numbers(to, count); });
  });
  const auto reads = [count, way](http::request& asked, bool collects) -> task<http::response> {
    body_source<http::request> from(asked, collects);
    co_await check_drained(from, count, way);
    co_return http::response::text("read");
  };
  made.post("/read", [reads](http::request& asked) { return reads(asked, false); });
  made.post("/read_all", [reads](http::request& asked) { return reads(asked, true); });
  made.post("/parts", [count, way](http::request& asked) -> task<http::response> {
    parts_source from(asked);
    co_await check_drained(from, count, way);
    co_return http::response::text("read");
  });
  made.post("/json", [](http::request& asked) -> task<http::response> {
    for (int i = 0; i < 20; ++i) {
      auto soon = [](int turns) -> task<> {
        for (int k = 0; k < turns; ++k) co_await yield();
      };
      auto first = co_await when_any(http::read_json<std::vector<int>>(asked), soon(i % 4));
      if (first.index() == 0) break;
    }
    const auto numbers = co_await http::read_json<std::vector<int>>(asked);
    co_return http::response::text(std::to_string(numbers.size()));
  });
  made.post("/form", [](http::request& asked) -> task<http::response> {
    auto soon = [](int turns) -> task<> {
      for (int k = 0; k < turns; ++k) co_await yield();
    };
    std::string said;
    for (int i = 0; said.empty(); ++i) {
      try {
        auto either = when_any(http::read_form(asked), soon(i % 9));
        auto first = co_await std::move(either);
        if (first.index() == 0) said = std::to_string(std::get<0>(first).fields().size());
      } catch (const usage_error&) {
        said = "lost";
      }
    }
    for (;;) {  // the client sends all of it
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
    }
    co_return http::response::text(std::move(said));
  });
  made.get("/receive", [count, way] {
    return http::response::websocket([count, way](http::websocket& peer) -> task<> {
      messages_source from(peer);
      co_await check_drained(from, count, way);
    });
  });
  made.get("/echo", [] {
    return http::response::websocket([](http::websocket& peer) -> task<> {
      for (;;) {
        const auto message = co_await peer.receive();
        if (!message) co_return;
      }
    });
  });
  made.get("/send", [count] {
    return http::response::websocket(
        [count](http::websocket& peer) { return send_numbers(peer, count); });
  });
  return made;
}

class http_given_up : public http_conformance {
 protected:
  void ask(given_up_by way, bool by_http2,
           const std::function<task<>(const http::client& web, std::string url)>& what) {
    http::client_options chosen;
    chosen.http2_prior_knowledge = by_http2;
    const int count = fewer(values, 10);
    run(routes(count, way), [&](runtime&, http::server, endpoint at) -> task<> {
      const http::client web(chosen);
      task<> asked = what(web, "http://127.0.0.1:" + std::to_string(at.port()));
      co_await std::move(asked);
      web.close_idle();
    });
  }
  // With each version of HTTP, and each way to give up.
  void ask_each(
      std::function<task<>(const http::client& web, std::string url, given_up_by way)> what) {
    for (const bool by_http2 : {false, true}) {
      for (const given_up_by way : ways_to_give_up) {
        SCOPED_TRACE(std::string(by_http2 ? "HTTP/2" : "HTTP/1") + ", way " +
                     std::to_string(static_cast<int>(way)));
        ask(way, by_http2, [&](const http::client& web, std::string url) {
          return what(web, std::move(url), way);
        });
      }
    }
  }
  void read_answers(bool collects) {
    const int count = fewer(values, 10);
    ask_each([&](const http::client& web, std::string url, given_up_by way) -> task<> {
      http::client_response answer = co_await web.get(url + "/numbers");
      body_source<http::client_response> from(answer, collects);
      co_await check_drained(from, count, way);
    });
  }
  template <class Write>
  void post_to(const char* path, const char* type, const char* said, Write write) {
    ask_each([&](const http::client& web, std::string url, given_up_by) -> task<> {
      http::client_request asked("POST", url + path);
      http::upload_function how = write;
      asked.body(std::move(how), type);
      http::client_response answer = co_await web.send(std::move(asked));
      const std::string text = co_await answer.read_all();
      EXPECT_EQ(text, said);
    });
  }
};

TEST_P(http_given_up, client_response_read) { read_answers(false); }
TEST_P(http_given_up, client_response_read_all) { read_answers(true); }

TEST_P(http_given_up, request_read) {
  post_to("/read", "text/plain", "read",
          [](http::upload& to) { return write_numbers(to, fewer(values, 10)); });
}
TEST_P(http_given_up, request_read_all) {
  post_to("/read_all", "text/plain", "read",
          [](http::upload& to) { return write_numbers(to, fewer(values, 10)); });
}
TEST_P(http_given_up, multipart_reader) {
  post_to("/parts", "multipart/form-data; boundary=b", "read",
          [](http::upload& to) { return write_parts(to, fewer(values, 10)); });
}
TEST_P(http_given_up, read_json_can_be_called_again) {
  post_to("/json", "application/json", "1000", [](http::upload& to) -> task<> {
    co_await to.write("[0");
    for (int i = 1; i < 1000; ++i) {
      const std::string next = "," + std::to_string(i);
      co_await to.write(next);
      if (i % 100 == 0) co_await yield();
    }
    co_await to.write("]");
  });
}

// All of it, or an error: never what came behind the parts that were lost.
TEST_P(http_given_up, a_form_that_is_given_up_is_no_form) {
  const int count = fewer(values, 10);
  ask_each([&](const http::client& web, std::string url, given_up_by) -> task<> {
    http::client_request asked("POST", url + "/form");
    http::upload_function how = [](http::upload& to) { return write_parts(to, fewer(values, 10)); };
    asked.body(std::move(how), "multipart/form-data; boundary=b");
    http::client_response answer = co_await web.send(std::move(asked));
    const std::string text = co_await answer.read_all();
    EXPECT_TRUE(text == "lost" || text == std::to_string(count)) << text;
  });
}

TEST_P(http_given_up, websocket_receive) {
  const int count = fewer(values, 10);
  ask_each([&](const http::client& web, std::string url, given_up_by way) -> task<> {
    const auto peer = co_await web.websocket(url + "/send");
    messages_source from(*peer);
    co_await check_drained(from, count, way);
  });
}
// A send that was done wins, even if its helper is given up while the send's competitor ends. One
// that is given up in the middle of its bytes ends the connection's sends.
TEST_P(http_given_up, a_send_of_a_websocket_that_was_done_in_a_helper_wins) {
  const int count = fewer(100, 10);
  ask(given_up_by::helper, false, [&](const http::client& web, std::string url) -> task<> {
    const auto peer = co_await web.websocket(url + "/echo");
    int done = 0, sent = 0;
    bool is_cut = false;
    const auto sends = [&](int number) -> task<> {
      try {
        co_await peer->send(std::to_string(number));
      } catch (const io_error&) {
        is_cut = true;
      }
      const bool has_lost = co_await tasks::being_cancelled();
      if (!has_lost) ++done;
    };
    for (int i = 0; i < count && !is_cut; ++i) {
      task<> helper = in_helpers<void>(sends(i), 1 + i % (helper_ways - 1));
      const auto won =
          co_await when_any(std::move(helper), sleep_for(std::chrono::microseconds(i % 7 * 40)));
      if (won.index() == 0) ++sent;
      EXPECT_EQ(done, sent) << i;
    }
    if (is_cut) co_return;
    co_await peer->close();
    while (co_await peer->receive()) continue;
  });
}
TEST_P(http_given_up, websocket_receive_of_the_server) {
  const int count = fewer(values, 10);
  ask_each([&](const http::client& web, std::string url, given_up_by) -> task<> {
    const auto peer = co_await web.websocket(url + "/receive");
    co_await send_numbers(*peer, count);
    co_await peer->close();
    while (co_await peer->receive()) continue;
  });
}

TROUPE_HTTP_TEST_EACH(http_given_up);

}  // namespace
}  // namespace troupe::test
