// Handlers, and functions that stream an answer, as coroutines that suspend before they read their
// arguments: the arguments stay until the coroutines have ended. AddressSanitizer finds what was
// freed too early, because contexts are poisoned.
#include <chrono>
#include <memory>
#include <utility>

#include "support/counted.hpp"
#include "support/http.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::request;
using http::response;
using http::router;

class http_coroutines : public http_conformance {
 protected:
  // Returns the body of the answer to a request that is sent in this many pieces.
  std::string body_of(router routes, std::string asked, std::size_t pieces = 1) {
    std::string got;
    run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(at);
      const std::size_t each = asked.size() / pieces + 1;
      for (std::string_view left = asked; !left.empty();
           left.remove_prefix(std::min(each, left.size()))) {
        co_await peer.write_all(left.substr(0, each));
        co_await sleep_for(1ms);
      }
      task<std::string> reading = read_to_end(peer);
      got = co_await std::move(reading);
    });
    const std::size_t head = got.find("\r\n\r\n");
    return head == std::string::npos ? got : got.substr(head + 4);
  }
};

std::string get(std::string_view target) {
  return "GET " + std::string(target) +
         " HTTP/1.1\r\nHost: a\r\nX-Note: a note\r\nConnection: close\r\n\r\n";
}
constexpr std::string_view why =
    "a text that is longer than a string holds by itself, and so lies in the context";

struct kept_error : std::exception {
  explicit kept_error(context& in) : text(static_cast<char*>(in.allocate(why.size() + 1, 1))) {
    text[why.copy(text, why.size())] = '\0';
  }
  const char* what() const noexcept override { return text; }
  char* text;
};

TEST_P(http_coroutines, parameters_stay_however_they_are_taken) {
  const std::string name = "a-name-that-is-longer-than-a-string-holds";
  for (const std::size_t pieces : {1u, 7u}) {
    router routes;
    routes.get(
        "/reference/{a}/{b}",
        [](const request& asked, const std::string& a, const int& b) -> task<response> {
          co_await sleep_for(1us);
          co_return response::text(a + std::to_string(b) + std::string(asked.field("x-note")));
        });
    routes.get("/moved/{a}/{b}", [](std::string&& a, int&& b) -> task<response> {
      co_await sleep_for(1us);
      co_return response::text(std::move(a) + std::to_string(b));
    });
    routes.get("/value/{a}/{b}",
               [](request& asked, std::string a, std::string_view b) -> task<response> {
                 co_await sleep_for(1us);
                 static_cast<void>(asked.memory().allocate(100));
                 co_return response::text(a + std::string(b));
               });
    routes.get("/view/{a}/{b...}",
               [](const std::string_view& a, const std::string_view& b) -> task<response> {
                 co_await sleep_for(1us);
                 co_return response::text(std::string(a) + std::string(b));
               });
    std::vector<std::pair<std::string, std::string>> cases{
        {"/reference/" + name + "/7", name + "7a note"},
        {"/moved/" + name + "/7", name + "7"},
        {"/value/" + name + "%2F/b%20c", name + "/b c"},
        {"/view/" + name + "/b%20c/d", name + "b c/d"}};
    std::vector<std::string> got(cases.size());
    run(std::move(routes), [&](runtime&, http::server, endpoint to) -> task<> {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        tcp_stream peer = co_await tcp_stream::connect(to);
        const std::string asked = get(cases[i].first);
        const std::size_t each = asked.size() / pieces + 1;
        for (std::string_view left = asked; !left.empty();
             left.remove_prefix(std::min(each, left.size()))) {
          co_await peer.write_all(left.substr(0, each));
          co_await sleep_for(1ms);
        }
        task<std::string> reading = read_to_end(peer);
        const std::string answer = co_await std::move(reading);
        got[i] = answer.substr(answer.find("\r\n\r\n") + 4);
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i)
      EXPECT_EQ(got[i], cases[i].second) << cases[i].first;
  }
}

TEST_P(http_coroutines, the_head_stays_while_a_body_comes) {
  const std::string body(100'000, 'b');
  router routes;
  routes.post("/{name}", [](request& asked, std::string_view name) -> task<response> {
    co_await sleep_for(1us);
    const std::string_view note = asked.field("x-note");
    const std::string_view all = co_await asked.read_all();
    std::pmr::string text(name, &asked.memory());
    ((text += note) += asked.query()) += std::to_string(all.size());
    co_return response::view(*asked.memory().make<std::pmr::string>(text), "text/plain");
  });
  std::string asked =
      "POST /na%6De?x=1 HTTP/1.1\r\nHost: a\r\nX-Note: -note-\r\nConnection: "
      "close\r\nContent-Length: 100000\r\n\r\n";
  EXPECT_EQ(body_of(std::move(routes), asked + body, 9), "name-note-x=1100000");
}

TEST_P(http_coroutines, what_streams_an_answer_keeps_what_it_captured) {
  const std::string text(why);
  router routes;
  routes.get("/stream", [text] {
    return response::stream("text/plain", [text](http::body_writer& to) -> task<> {
      co_await sleep_for(1us);
      co_await to.write(text);
      co_await sleep_for(1us);
      co_await to.write(std::string(text));
    });
  });
  routes.get("/events", [text](request&) -> task<response> {
    co_await sleep_for(1us);
    co_return response::events([text](http::event_writer& to) -> task<> {
      co_await sleep_for(1us);
      co_await to.send(http::event_message(text));
      co_await to.comment(text);
    });
  });
  std::vector<std::string> got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    for (const char* target : {"/stream", "/events"}) {
      task<std::string> asking = exchange(at, get(target));
      got.push_back(co_await std::move(asking));
    }
  });
  EXPECT_NE(got[0].find(text), std::string::npos) << got[0];
  EXPECT_TRUE(got[0].ends_with(text + "\r\n0\r\n\r\n")) << got[0];
  EXPECT_NE(got[1].find("data: " + text + "\n\n"), std::string::npos) << got[1];
}

constexpr const char* socket_asked =
    "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
    "websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

TEST_P(http_coroutines, what_talks_on_a_websocket_keeps_what_it_captured) {
  const std::string text(why);
  router routes;
  routes.get("/socket", [text](request&) -> task<response> {
    co_await sleep_for(1us);
    co_return response::websocket([text](http::websocket& peer) -> task<> {
      co_await sleep_for(1us);
      co_await peer.send(text);
    });
  });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    task<std::string> asking = exchange(at, socket_asked);
    got = co_await std::move(asking);
  });
  EXPECT_NE(got.find(text), std::string::npos) << got;
}

// Each way to fail with an exception that refers to the request's memory.
TEST_P(http_coroutines, what_they_throw_of_the_memory_can_be_read_by_who_runs_the_program) {
  for (const std::string path : {"/plain", "/waits", "/stream", "/socket"}) {
    router routes;
    routes.get("/plain",
               [](const request& asked) -> response { throw kept_error(asked.memory()); });
    routes.get("/waits", [](const request& asked) -> task<response> {
      co_await sleep_for(1us);
      throw kept_error(asked.memory());
    });
    routes.get("/stream", [](const request& asked) {
      context* const memory = &asked.memory();
      return response::stream("text/plain", [memory](http::body_writer& to) -> task<> {
        co_await sleep_for(1us);
        co_await to.write("begun");
        throw kept_error(*memory);
      });
    });
    routes.get("/socket", [](const request& asked) {
      context* const memory = &asked.memory();
      return response::websocket([memory](http::websocket& peer) -> task<> {
        co_await peer.send("begun");
        throw kept_error(*memory);
      });
    });
    std::string thrown;
    runtime rt(options());
    rt.spawn(serve_while(
        rt, http::server(std::move(routes)), [&](runtime&, http::server, endpoint at) -> task<> {
          task<std::string> asking = exchange(at, path == "/socket" ? socket_asked : get(path));
          static_cast<void>(co_await std::move(asking));
        }));
    try {
      rt.run();
    } catch (const std::exception& e) {
      thrown = e.what();
    }
    EXPECT_EQ(thrown, why) << path;
  }
  EXPECT_EQ(count_contexts().active, 0);
}

// The program ends while each coroutine waits for an event that never comes.
TEST_P(http_coroutines, each_may_be_stopped_in_flight) {
  for (const std::string path : {"/waits", "/body", "/stream", "/events", "/socket"}) {
    SCOPED_TRACE(path);
    {
      event begun;
      const auto stay = [begun](context* memory) -> task<> {
        const std::pmr::string kept(why, memory);
        const counted one;
        begun.set();
        event never;
        co_await never.wait();
        EXPECT_EQ(kept, why);
      };
      router routes;
      routes.get("/waits", [stay](const request& asked) -> task<response> {
        co_await stay(&asked.memory());
        co_return response();
      });
      routes.post("/body", [begun](request& asked) -> task<response> {
        const std::pmr::string kept(why, &asked.memory());
        begun.set();
        co_await asked.read_all();
        EXPECT_EQ(kept, why);
        co_return response();
      });
      routes.get("/stream", [stay](const request& asked) {
        context* const memory = &asked.memory();
        return response::stream(
            "text/plain", [stay, memory](http::body_writer&) -> task<> { co_await stay(memory); });
      });
      routes.get("/events", [stay](const request& asked) {
        context* const memory = &asked.memory();
        return response::events(
            [stay, memory](http::event_writer&) -> task<> { co_await stay(memory); });
      });
      routes.get("/socket", [stay](const request& asked) {
        context* const memory = &asked.memory();
        return response::websocket(
            [stay, memory](http::websocket&) -> task<> { co_await stay(memory); });
      });
      runtime rt(options());
      auto talk = [](runtime& in, http::server web, std::string asked, event told) -> task<> {
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const endpoint at = listener.local();
        in.spawn(web.serve(std::move(listener)));
        tcp_stream made = co_await tcp_stream::connect(at);
        const auto peer = std::make_shared<tcp_stream>(std::move(made));
        co_await peer->write_all(asked);
        // The simulated network keeps little that is not read.
        future<std::string> reading = spawn(read_to_end(peer));
        co_await told.wait();
        in.stop();
        event never;
        co_await never.wait();
      };
      const std::string post = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf";
      rt.spawn(talk(rt, http::server(std::move(routes)),
                    path == "/socket" ? socket_asked
                    : path == "/body" ? post
                                      : get(path),
                    begun));
      rt.run();
      EXPECT_TRUE(begun.is_set()) << path;
    }
    EXPECT_EQ(live.load(), 0) << path;
    EXPECT_EQ(count_contexts().active, 0) << path;
  }
}

TEST_P(http_coroutines, what_uploads_keeps_what_it_captured) {
  router routes;
  routes.post("/", [](request& asked) -> task<response> {
    const std::string_view all = co_await asked.read_all();
    co_return response::text(std::string(all));
  });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    std::string text(why);
    http::client_request asked("POST", "http://" + at.to_string() + "/");
    asked.body(
        [text](http::upload& to) -> task<> {
          co_await sleep_for(1us);
          co_await to.write(text);
          co_await sleep_for(1us);
          co_await to.write(text);
        },
        "text/plain");
    http::client_response answer = co_await web.send(std::move(asked));
    got = co_await answer.read_all();
  });
  EXPECT_EQ(got, std::string(why) + std::string(why));
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_coroutines);

}  // namespace troupe::test
