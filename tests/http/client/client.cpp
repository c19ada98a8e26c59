// The client receives what the server sent, and sends what its caller asked for.
#include "http/client/scripted.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::client_request;
using http::client_response;

class http_client : public client_conformance {};

TEST_P(http_client, answers_of_every_framing) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /length ")) return with_length("five!");
    if (request.starts_with("GET /chunks "))
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
             "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
    if (request.starts_with("GET /close ")) return {"HTTP/1.1 200 OK\r\n\r\nto the end", true};
    if (request.starts_with("GET /old ")) return {"HTTP/1.0 200 OK\r\n\r\nold", true};
    if (request.starts_with("HEAD ")) return "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    if (request.starts_with("GET /none ")) return "HTTP/1.1 204 No Content\r\n\r\n";
    if (request.starts_with("GET /same "))
      return "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n";
    if (request.starts_with("GET /interim "))
      return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
             with_length("at last");
    return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    constexpr std::pair<const char*, const char*> table[] = {
        {"/length", "200 five!"},    {"/chunks", "200 abcde"}, {"/close", "200 to the end"},
        {"/old", "200 old"},         {"/none", "204 "},        {"/same", "304 "},
        {"/interim", "200 at last"}, {"/other", "404 "}};
    for (const auto& [target, wanted] : table) {
      const std::string got = co_await outcome_of(web.get(server.url(target)));
      EXPECT_EQ(got, wanted);
    }
    const std::string head = co_await outcome_of(web.head(server.url("/length")));
    EXPECT_EQ(head, "200 ");
    client_response chunks = co_await web.get(server.url("/chunks"));
    const std::string all = co_await chunks.read_all();
    EXPECT_EQ(all, "abcde");
    EXPECT_EQ(chunks.trailer()["x-sum"], "5");
    EXPECT_EQ(chunks.field("x-sum"), "");
    EXPECT_EQ(chunks.field("transfer-encoding"), "chunked");
    EXPECT_EQ(chunks.reason(), "OK");
    EXPECT_EQ(chunks.url(), server.url("/chunks"));
  });
}

// Bytes that come while a read is given up belong to the next read.
TEST_P(http_client, a_read_that_is_given_up_loses_nothing) {
  run(
      [](const std::string&) -> scripted_answer {
        return "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
               "chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
      },
      [](scripted_server& server, client web) -> task<> {
        client_response answer = co_await web.get(server.url());
        const auto at_once = []() -> task<> { co_return; };
        std::string all;
        for (;;) {
          auto either = when_any(at_once(), answer.read());
          const auto how = co_await std::move(either);
          EXPECT_EQ(how.index(), 0u);
          const std::string_view piece = co_await answer.read();
          if (piece.empty()) break;
          all += piece;
        }
        EXPECT_EQ(all, "abcdefg");
        EXPECT_EQ(web.idle(), 1u);
      });
}

TEST_P(http_client, a_connection_serves_one_request_after_the_other) {
  run([](const std::string&) -> scripted_answer { return with_length("x"); },
      [](scripted_server& server, client web) -> task<> {
        for (int i = 0; i < 5; ++i) co_await fetch(web.get(server.url()));
        EXPECT_EQ(server.connections(), 1);
        EXPECT_EQ(web.idle(), 1u);
        // Two requests at the same time have a connection each.
        auto both = when_all(fetch(web.get(server.url())), fetch(web.get(server.url())));
        co_await std::move(both);
        EXPECT_EQ(server.connections(), 2);
        EXPECT_EQ(web.idle(), 2u);
        {  // A connection whose answer is not read to its end is not kept.
          client_response dropped = co_await web.get(server.url());
        }
        EXPECT_EQ(web.idle(), 1u);
        web.close_idle();
        EXPECT_EQ(web.idle(), 0u);
      });
}

// The server reads no more of the request, and does not close the connection.
TEST_P(http_client, an_answer_that_comes_before_the_whole_request_is_one) {
  client_options soon;
  soon.write_time = 1s;
  const auto talk = [](client web) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string url = "http://127.0.0.1:" + std::to_string(listener.local().port()) + "/";
    event done;
    const auto serve = [&](bool answers) -> task<> {
      tcp_stream peer = co_await listener.accept();
      std::array<char, 16> begun;
      co_await peer.read_exact(begun);
      if (answers)
        co_await peer.write_all("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
      co_await done.wait();
    };
    for (const bool answers : {true, false}) {
      done.reset();
      future<> serving = spawn(serve(answers));
      const std::string got = co_await outcome_of(web.post(url, std::string(20'000'000, 'x'), ""));
      EXPECT_EQ(got, answers ? "413 big" : "timed_out");
      EXPECT_EQ(web.idle(), 0u);
      done.set();
      co_await std::move(serving);
    }
  };
  runtime rt(options());
  rt.spawn(talk(client(std::move(soon))));
  rt.run();
}

// Whether a connection is kept does not depend on whether its answer has a body.
TEST_P(http_client, what_ends_behind_a_bare_answer_is_not_kept) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("HEAD /old "))
      return {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", true};
    if (request.starts_with("HEAD /kept "))
      return "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n";
    if (request.starts_with("GET /twice "))
      return {"HTTP/1.1 204 No Content\r\nConnection: x\r\nConnection: close\r\n\r\n", true};
    return "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n";
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    co_await fetch(web.head(server.url("/old")));
    EXPECT_EQ(web.idle(), 0u);
    co_await fetch(web.get(server.url("/twice")));
    EXPECT_EQ(web.idle(), 0u);
    co_await fetch(web.head(server.url("/kept")));
    co_await fetch(web.get(server.url("/same")));
    EXPECT_EQ(web.idle(), 1u);
    EXPECT_EQ(server.connections(), 3);
  });
}

TEST_P(http_client, few_connections_are_kept_and_not_for_long) {
  client_options few;
  few.idle_per_origin = 2;
  few.idle_time = 500ms;
  run([](const std::string&) -> scripted_answer { return with_length("x"); },
      [](scripted_server& server, client web) -> task<> {
        auto all = when_all(fetch(web.get(server.url())), fetch(web.get(server.url())),
                            fetch(web.get(server.url())));
        co_await std::move(all);
        EXPECT_EQ(web.idle(), 2u);
        co_await sleep_for(550ms);
        co_await fetch(web.get(server.url()));
        EXPECT_EQ(server.connections(), 4);
        EXPECT_EQ(web.idle(), 1u);
      },
      std::move(few));
}

TEST_P(http_client, few_connections_are_kept_to_all_origins_together) {
  client_options few;
  few.idle = 1;
  run([](const std::string&) -> scripted_answer { return with_length("x"); },
      [](scripted_server& server, client web) -> task<> {
        const std::string first = server.url(),
                          second = "http://localhost:" + std::to_string(server.port()) + "/";
        co_await fetch(web.get(first));
        EXPECT_EQ(web.idle(), 1u);
        co_await fetch(web.get(second));
        EXPECT_EQ(web.idle(), 1u);
        co_await fetch(web.get(second));
        EXPECT_EQ(server.connections(), 2);
        co_await fetch(web.get(first));  // the older one was closed
        EXPECT_EQ(server.connections(), 3);
      },
      std::move(few));
}

TEST_P(http_client, the_request_is_what_was_asked_for) {
  run([](const std::string&) -> scripted_answer { return with_length(""); },
      [](scripted_server& server, client web) -> task<> {
        co_await fetch(web.get(server.url("/a b?c#d")));
        client_request put("PUT", server.url("/thing"));
        // The last body counts, and so does its type.
        put.body("another body", "text/html")
            .field("X-One", "1")
            .field("Accept", "text/plain")
            .body("body", "text/plain");
        co_await fetch(web.send(std::move(put)));
        const std::string big(300'000, 'b');
        co_await fetch(web.post(server.url(), big, "application/octet-stream"));
        client_request chunks("POST", server.url("/chunks"));
        http::upload_function pieces = [](http::upload& to) -> task<> {
          co_await to.write("one");
          co_await to.write("");
          co_await to.write(std::string(20, 'x'));
        };
        chunks.body(std::move(pieces), "text/plain");
        co_await fetch(web.send(std::move(chunks)));
        client_request part("GET", server.url("/part"));
        part.range(1).range(5, 9);
        co_await fetch(web.send(std::move(part)));
        const std::string host = "Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n",
                          agent = "User-Agent: troupe\r\n";
        const std::vector<std::string> got = server.requests();
        EXPECT_EQ(got.size(), 5u);
        EXPECT_EQ(got[0], "GET /a%20b?c HTTP/1.1\r\n" + host + agent + "\r\n");
        EXPECT_EQ(got[1], "PUT /thing HTTP/1.1\r\n" + host + agent +
                              "X-One: 1\r\nAccept: text/plain\r\nContent-Type: "
                              "text/plain\r\nContent-Length: 4\r\n\r\nbody");
        EXPECT_TRUE(got[2].ends_with("Content-Length: 300000\r\n\r\n" + big));
        EXPECT_EQ(got[3], "POST /chunks HTTP/1.1\r\n" + host + agent +
                              "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\none\r\n14\r\nxxxxxxxxxxxxxxxxxxxx\r\n0\r\n\r\n");
        EXPECT_EQ(got[4], "GET /part HTTP/1.1\r\n" + host + agent + "Range: bytes=5-9\r\n\r\n");
      });
}

// GCC 12 destroys some temporaries of coroutines twice.
TEST_P(http_client, what_a_request_owns_is_destroyed_once) {
  run([](const std::string&) -> scripted_answer { return with_length(""); },
      [](scripted_server& server, client web) -> task<> {
        for (const bool sent : {true, false}) {
          client_request asked("POST", sent ? server.url() : "http://127.1/");
          http::upload_function owns = [kept = counted()](http::upload& to) -> task<> {
            const counted also = kept;
            co_await to.write("x");
          };
          asked.body(std::move(owns), "");
          const std::string got = co_await outcome_of(web.send(std::move(asked)));
          EXPECT_EQ(got, sent ? "200 " : "resolve_error");
        }
      });
  EXPECT_EQ(live.load(), 0);
}

TEST_P(http_client, redirects_are_followed_as_the_status_says) {
  const auto says = [](const std::string& request) -> scripted_answer {
    const auto to = [](int status, const char* where) {
      return "HTTP/1.1 " + std::to_string(status) + " There\r\nLocation: " + where +
             "\r\nContent-Length: 4\r\n\r\ngone";
    };
    const std::string target =
        request.substr(request.find(' ') + 1, request.find(" HTTP") - request.find(' ') - 1);
    if (target.starts_with("/to/")) return to(std::stoi(target.substr(4)), "../end?x");
    if (target == "/circle") return to(302, "circle");
    if (target == "/ftp") return to(302, "ftp://127.0.0.1/");
    if (target == "/split") return to(302, "/a b");
    if (target == "/nowhere") return "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n";
    return with_length(request);
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    for (const int status : {301, 302, 303, 307, 308}) {
      client_request post("POST", server.url("/to/" + std::to_string(status)));
      post.field("Authorization", "secret").body("body", "text/plain");
      const std::string got = co_await fetch(web.send(std::move(post)));
      const bool same = status >= 307;
      EXPECT_TRUE(got.starts_with(same ? "200 POST /end?x " : "200 GET /end?x ")) << got;
      EXPECT_EQ(got.ends_with("\r\n\r\nbody"), same) << got;
      EXPECT_EQ(got.contains("Content-Type"), same) << got;
      EXPECT_TRUE(got.contains("Authorization: secret")) << got;
    }
    EXPECT_EQ(server.connections(), 1);
    const std::string circle = co_await outcome_of(web.get(server.url("/circle")));
    EXPECT_EQ(circle, "too_many_redirects");
    const std::string other = co_await outcome_of(web.get(server.url("/ftp")));
    EXPECT_EQ(other, "bad_redirect");
    const std::string encoded = co_await outcome_of(web.get(server.url("/split")));
    EXPECT_TRUE(encoded.starts_with("200 GET /a%20b HTTP")) << encoded;
    const std::string nowhere = co_await outcome_of(web.get(server.url("/nowhere")));
    EXPECT_EQ(nowhere, "302 ");
    client_request once("POST", server.url("/to/307"));
    http::upload_function pieces = [](http::upload& to) -> task<> { co_await to.write("x"); };
    once.body(std::move(pieces), "");
    const std::string gone = co_await outcome_of(web.send(std::move(once)));
    EXPECT_EQ(gone, "bad_redirect");
  });
}

TEST_P(http_client, a_redirect_to_another_origin_takes_no_secrets_along) {
  const auto says = [](const std::string& request) -> scripted_answer {
    const std::size_t at = request.find("/away/");
    if (at == std::string::npos) return with_length(request);
    return "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:" +
           request.substr(at + 6, request.find(' ', at) - at - 6) +
           "/end\r\nContent-Length: 0\r\n\r\n";
  };
  const auto meet = [](scripted_server& server, client web) -> task<> {
    scripted_server other([](const std::string& request) -> scripted_answer {
      return {with_length(request), true};
    });
    // (Code within a program of the library has a runtime at hand.)
    listen_options weak;
    weak.weak = true;
    auto listener = tcp_listener::listen(endpoint::loopback(0), weak);
    auto answers = [](tcp_listener from) -> task<> {
      tcp_stream peer = co_await from.accept();
      std::string request;
      std::array<char, 1000> buffer;
      while (!request.contains("\r\n\r\n")) {
        const std::size_t bytes = co_await peer.read(buffer);
        request.append(buffer.data(), bytes);
      }
      co_await peer.write_all(with_length(request));
    };
    const std::string port = std::to_string(listener.local().port());
    troupe::spawn(answers(std::move(listener)));
    client_request asked("GET", server.url("/away/" + port));
    asked.field("Authorization", "secret").field("cookie", "secret").field("X-Kept", "yes");
    const std::string got = co_await fetch(web.send(std::move(asked)));
    EXPECT_TRUE(got.contains("X-Kept: yes")) << got;
    EXPECT_FALSE(got.contains("secret")) << got;
  };
  run(says, meet);
}

TEST_P(http_client, a_kept_connection_that_has_ended_is_replaced) {
  // Each connection answers one request, and ends when the second one comes.
  std::atomic<int> asked{0};
  const auto says = [&asked](const std::string&) -> scripted_answer {
    if (++asked % 2 == 0) return {"", true};
    return with_length("x");
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const std::string one = co_await outcome_of(web.get(server.url()));
    const std::string two = co_await outcome_of(web.get(server.url()));
    EXPECT_EQ(one + two, "200 x200 x");
    EXPECT_EQ(server.requests().size(), 3u);
    // A POST must not be repeated, because twice is not the same as once.
    const std::string post = co_await outcome_of(web.post(server.url(), "x", ""));
    EXPECT_TRUE(post == "closed" || post == "io_error") << post;
    EXPECT_EQ(server.requests().size(), 4u);
  });
}

TEST_P(http_client, what_came_unasked_is_nobodys_answer) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /two ")) return with_length("one") + with_length("two");
    return with_length("mine");
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    const std::string first = co_await outcome_of(web.get(server.url("/two")));
    EXPECT_EQ(first, "200 one");
    co_await sleep_for(1ms);
    const std::string second = co_await outcome_of(web.get(server.url("/mine")));
    EXPECT_EQ(second, "200 mine");
  });
}

TEST_P(http_client, a_part_of_a_body) {
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /unasked ") || request.contains("Range: bytes=2-4")) {
      return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-4/10\r\nContent-Length: "
             "3\r\n\r\ncde";
    }
    return "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */10\r\nContent-Length: "
           "0\r\n\r\n";
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    client_request asked("GET", server.url());
    asked.range(2, 4);
    client_response answer = co_await web.send(std::move(asked));
    const auto range = answer.range();
    EXPECT_TRUE(range.has_value() && range->first == 2 && range->last == 4 && range->of == 10u);
    const std::string part = co_await answer.read_all();
    EXPECT_EQ(part, "cde");
    client_request beyond("GET", server.url());
    beyond.range(20);
    const std::string none = co_await outcome_of(web.send(std::move(beyond)));
    EXPECT_EQ(none, "416 ");
    const std::string unasked = co_await outcome_of(web.get(server.url("/unasked")));
    EXPECT_EQ(unasked, "bad_response");
  });
}

// If the reader pauses, the server has to pause, too: this side keeps only one buffer.
TEST_P(http_client, a_slow_reader_slows_the_server) {
  static const std::string huge(static_cast<std::size_t>(60'000'000), 'h');
  run([](const std::string&) -> scripted_answer { return with_length(huge); },
      [](scripted_server& server, client web) -> task<> {
        client_response answer = co_await web.get(server.url());
        const std::string_view piece = co_await answer.read();
        EXPECT_FALSE(piece.empty());
        co_await sleep_for(10ms);
        EXPECT_LT(server.sent(), huge.size() / 2);
      });
}

TEST_P(http_client, a_second_reader_is_refused) {
  const auto says = [](const std::string&) -> scripted_answer {
    scripted_answer answer(with_length(std::string(10'000, 'x')));
    answer.pause = 5ms;
    return answer;
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    client_response answer = co_await web.get(server.url());
    auto reads = [](client_response& from) -> task<int> {
      try {
        const std::string all = co_await from.read_all();
        co_return static_cast<int>(all.size());
      } catch (const usage_error&) {
        co_return -1;
      }
    };
    auto both = when_all(reads(answer), reads(answer));
    auto [one, two] = co_await std::move(both);
    EXPECT_EQ(one, 10'000);
    EXPECT_EQ(two, -1);
  });
}

TEST_P(http_client, an_answer_before_the_end_of_the_request) {
  run(
      [](const std::string&) -> scripted_answer {
        return {
            "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno!",
            true};
      },
      [](scripted_server& server, client web) -> task<> {
        client_request asked("POST", server.url());
        asked.field("X-Early", "1").body(std::string(1'000'000, 'x'), "");
        const std::string got = co_await outcome_of(web.send(std::move(asked)));
        // The answer is lost if the system drops it together with the connection.
        EXPECT_TRUE(got == "413 no!" || got == "io_error") << got;
      });
}

TROUPE_CLIENT_TEST_EACH(http_client);

}  // namespace
}  // namespace troupe::test
