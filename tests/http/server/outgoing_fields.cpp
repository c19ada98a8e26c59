// No text that a program gives adds a field to a head (docs/protocols/outgoing.md): each way to
// give one, on both sides and by both protocols.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "troupe/http/around/access.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/values/cookie.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/io/file.hpp"

namespace troupe::test {
namespace {

using http::client_options;
using http::client_request;
using http::request;
using http::response;
using http::router;

const std::vector<std::string>& odd_texts() {
  static const std::vector<std::string> all = {
      "a\r\nX-Evil: 1",           "a\nX-Evil: 1",         "a\rX-Evil: 1",
      "a\r\n\r\nHTTP/1.1 200 OK", std::string("a\0b", 3), "a\x7f",
  };
  return all;
}

class outgoing_fields : public http_conformance {
 protected:
  client_options client_for(bool by_http2) const {
    client_options chosen;
    chosen.http2_prior_knowledge = by_http2;
    return chosen;
  }
};

// A way in which a handler gives a text that the head of its answer has.
struct server_way {
  const char* name;
  std::function<response(const request&, const std::string& odd)> answer;
};

const std::vector<server_way>& server_ways() {
  static const std::vector<server_way> all = {
      {"field, value",
       [](const request&, const std::string& odd) {
         return response::text("ok").field("X-Value", odd);
       }},
      {"field, name",
       [](const request&, const std::string& odd) { return response::text("ok").field(odd, "1"); }},
      {"type",
       [](const request&, const std::string& odd) { return response::text("ok").type(odd); }},
      {"owned", [](const request&, const std::string& odd) { return response::owned("ok", odd); }},
      {"view", [](const request&, const std::string& odd) { return response::view("ok", odd); }},
      {"stream",
       [](const request&, const std::string& odd) {
         return response::stream(odd, [](http::body_writer&) -> task<> { co_return; });
       }},
      {"redirect",
       [](const request&, const std::string& odd) { return response::redirect("/" + odd); }},
      {"cookie, value",
       [](const request&, const std::string& odd) {
         return response::text("ok").cookie(http::cookie("a", odd));
       }},
      {"cookie, path",
       [](const request&, const std::string& odd) {
         return response::text("ok").cookie(http::cookie("a", "b").path("/" + odd));
       }},
      {"basic_auth",
       [](const request& asked, const std::string& odd) {
         const http::basic_auth checks(odd,
                                       [](std::string_view, std::string_view) { return true; });
         auto refused = checks(asked);
         return refused ? std::move(*refused) : response::text("ok");
       }},
      {"bearer_auth",
       [](const request& asked, const std::string& odd) {
         const http::bearer_auth checks(odd, [](std::string_view) { return true; });
         auto refused = checks(asked);
         return refused ? std::move(*refused) : response::text("ok");
       }},
      {"security_fields",
       [](const request& asked, const std::string& odd) {
         response answer = response::text("ok");
         http::security_fields{.content_security_policy = odd}(asked, answer);
         return answer;
       }},
      {"cors",
       [](const request& asked, const std::string& odd) {
         response answer = response::text("ok");
         http::cors{.origins = {"*"}, .exposed = odd}(asked, answer);
         return answer;
       }},
  };
  return all;
}

TEST_P(outgoing_fields, of_a_handler_are_checked) {
  for (const server_way& way : server_ways()) {
    for (const std::string& odd : odd_texts()) {
      router routes;
      routes.get("/", [&](const request& asked) { return way.answer(asked, odd); });
      const auto ask = [&](runtime&, http::server, endpoint at) -> task<> {
        for (const bool by_http2 : {false, true}) {
          const http::client asks(client_for(by_http2));
          const std::string where = "http://" + at.to_string() + "/";
          client_request asked("GET", where);
          asked.field("Origin", "https://example.org");
          auto answer = co_await asks.send(std::move(asked));
          EXPECT_EQ(answer.status(), 500) << way.name << " by HTTP/" << (by_http2 ? 2 : 1);
          EXPECT_TRUE(answer.field("X-Evil").empty()) << way.name;
          static_cast<void>(co_await answer.read_all());
        }
      };
      // What the handler throws is a failure of the program, too.
      EXPECT_THROW(run(std::move(routes), ask), usage_error) << way.name;
    }
  }
}

TEST_P(outgoing_fields, of_trailers_are_checked) {
  for (const std::string& odd : odd_texts()) {
    router routes;
    int refused = 0;
    routes.get("/", [&](const request&) -> response {
      return response::stream("text/plain", [&](http::body_writer& to) -> task<> {
        const auto fails = [&](std::string_view name, std::string_view value) {
          try {
            to.trailer(name, value);
          } catch (const usage_error&) {
            ++refused;
          }
        };
        fails("X-Sum", odd);
        fails(odd, "1");
        co_await to.write("ok");
      });
    });
    run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
      for (const bool by_http2 : {false, true}) {
        const http::client asks(client_for(by_http2));
        auto answer = co_await asks.get("http://" + at.to_string() + "/");
        const std::string body = co_await answer.read_all();
        EXPECT_EQ(body, "ok");
      }
    });
    EXPECT_EQ(refused, 4);
  }
}

// A way in which a program gives a client a text that the head of its request has.
struct client_way {
  const char* name;
  std::function<task<>(client_options, std::string where, const std::string& odd)> ask;
};

task<> send(client_options chosen, client_request asked) {
  const http::client asks(std::move(chosen));
  auto answer = co_await asks.send(std::move(asked));
  static_cast<void>(co_await answer.read_all());
}

const std::vector<client_way>& client_ways() {
  static const std::vector<client_way> all = {
      {"field, value",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         client_request asked("GET", where);
         asked.field("X-Value", odd);
         co_await send(std::move(chosen), std::move(asked));
       }},
      {"field, name",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         client_request asked("GET", where);
         asked.field(odd, "1");
         co_await send(std::move(chosen), std::move(asked));
       }},
      {"body",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         client_request asked("POST", where);
         asked.body("text", odd);
         co_await send(std::move(chosen), std::move(asked));
       }},
      {"method",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         co_await send(std::move(chosen), client_request(odd, where));
       }},
      {"URL",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         co_await send(std::move(chosen), client_request("GET", where + odd));
       }},
      {"user_agent",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         chosen.user_agent = odd;
         co_await send(std::move(chosen), client_request("GET", where));
       }},
      {"post",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         const http::client asks(std::move(chosen));
         auto answer = co_await asks.post(where, "text", odd);
         static_cast<void>(co_await answer.read_all());
       }},
      {"cookie",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         http::cookie_jar jar;
         jar.store(http::url::parse(where), "a=" + odd);
         chosen.cookies = jar;
         co_await send(std::move(chosen), client_request("GET", where));
       }},
      {"subprotocol",
       [](client_options chosen, std::string where, const std::string& odd) -> task<> {
         const http::client asks(std::move(chosen));
         http::websocket_options offers;
         offers.subprotocols = {odd};
         auto talk = co_await asks.websocket(client_request("GET", where), offers);
         static_cast<void>(talk);
       }},
  };
  return all;
}

// Refused before anything is sent, or sent without what is odd.
TEST_P(outgoing_fields, of_a_client_are_checked) {
  for (const client_way& way : client_ways()) {
    for (const std::string& odd : odd_texts()) {
      router routes;
      bool has_evil = false;
      const auto handle = [&](const request& asked) {
        has_evil = has_evil || asked.fields().has("x-evil");
        return response::text("ok");
      };
      routes.get("/", handle).post("/", handle);
      run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
        for (const bool by_http2 : {false, true}) {
          try {
            task<> asks = way.ask(client_for(by_http2), "http://" + at.to_string() + "/", odd);
            co_await std::move(asks);
          } catch (const troupe::error&) {
          }
        }
      });
      EXPECT_FALSE(has_evil) << way.name;
    }
  }
}

TROUPE_HTTP_TEST_EACH(outgoing_fields);

}  // namespace
}  // namespace troupe::test
