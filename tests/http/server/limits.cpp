// Limits: at the maximum the request succeeds, one past it the answer says which limit that was.
// Times are virtual where the server's clock counts.
#include "support/http.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

class http_limits : public http_conformance {};

// Only under the simulated policy, where long waits take no time.
class http_times : public http_conformance {};

router some_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.post("/body", [](const request& asked) {
    return response::text(std::to_string(asked.body().size()));
  });
  routes.post("/pieces", [](request& asked) -> task<response> {
    const std::string_view all = co_await asked.read_all();
    co_return response::text(std::to_string(all.size()));
  });
  routes.post(
      "/own",
      [](const request& asked) { return response::text(std::to_string(asked.body().size())); },
      {.body_bytes = 10});
  routes.get("/large", [] { return response::text(std::string(8 * 1024 * 1024, 'x')); });
  return routes;
}

int status_in(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}
const std::string get_last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

std::string post(const std::string& path, std::size_t bytes) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " + std::to_string(bytes) +
         "\r\n\r\n" + std::string(bytes, 'x');
}
std::string post_chunked(const std::string& path, int chunks) {
  std::string text =
      "POST " + path +
      " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < chunks; ++i) text += "a\r\n0123456789\r\n";
  return text + "0\r\n\r\n";
}

TEST_P(http_limits, of_a_body) {
  server_options limits;
  limits.body_bytes = 1000;
  for (const std::string path : {"/body", "/pieces"}) {
    EXPECT_EQ(status_in(answer_to(some_routes(), post(path, 1000), limits)), 200);
    EXPECT_EQ(status_in(answer_to(some_routes(), post(path, 1001), limits)), 413);
    EXPECT_EQ(status_in(answer_to(some_routes(), post_chunked(path, 100), limits)), 200);
    EXPECT_EQ(status_in(answer_to(some_routes(), post_chunked(path, 101), limits)), 413);
  }
  EXPECT_EQ(status_in(answer_to(some_routes(), post("/own", 10), limits)), 200);
  EXPECT_EQ(status_in(answer_to(some_routes(), post("/own", 11), limits)), 413);
  // The body is refused before it is sent: no "100 Continue" asks for it.
  const std::string asks =
      "POST /body HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n";
  EXPECT_EQ(status_in(answer_to(some_routes(), asks, limits)), 413);
}

TEST_P(http_limits, of_the_extensions_of_chunks) {
  server_options limits;
  limits.chunk_extension_bytes = 2000;
  const std::string begin =
      " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string one = "1;" + std::string(999, 'x') + "\r\nx\r\n";
  for (const std::string path : {"/body", "/pieces"}) {
    EXPECT_EQ(status_in(answer_to(some_routes(), "POST " + path + begin + one + one + "0\r\n\r\n",
                                  limits)),
              200);
    EXPECT_EQ(status_in(answer_to(some_routes(), "POST " + path + begin + one + one + "0;\r\n\r\n",
                                  limits)),
              400);
    EXPECT_EQ(
        status_in(answer_to(some_routes(),
                            "POST " + path + begin + one + one + "01\r\nx\r\n0\r\n\r\n", limits)),
        400);
  }
}

// The server waits for no byte of a chunk that would be too large, however large it is announced.
TEST_P(http_limits, of_a_body_are_held_against_what_a_chunk_announces) {
  server_options limits;
  limits.body_bytes = 1000;
  limits.body_grace = 1h;
  const std::string fields = " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string path : {"/body", "/pieces"}) {
    for (const std::string sizes : {"3e9\r\n", "7fffffffffffffff\r\n", "ffffffffffffffff\r\nabc",
                                    "a\r\n0123456789\r\n3df\r\n"}) {
      const std::string got = answer_to(some_routes(), "POST " + path + fields + sizes, limits);
      EXPECT_EQ(status_in(got), 413) << path << " " << sizes;
      EXPECT_EQ(got.find("HTTP/1.1", 1), std::string::npos) << got;
    }
    const std::string whole = "3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n";
    EXPECT_TRUE(answer_to(some_routes(), "POST " + path + fields + whole + get_last, limits)
                    .ends_with("hello"));
  }
  EXPECT_EQ(status_in(answer_to(some_routes(), "POST /own" + fields + "b\r\n", limits)), 413);
  // A handler that has answered without the body gives no second answer.
  router deaf;
  deaf.post("/", [](request&) -> task<response> { co_return response::text("no"); });
  const std::string got = answer_to(std::move(deaf), "POST /" + fields + "3e9\r\n", limits);
  EXPECT_TRUE(got.ends_with("no")) << got;
}

// Clients that are turned away take no place from others, although the server tells each of them
// why and waits until it has read that.
TEST_P(http_limits, who_is_turned_away_takes_no_place_from_others) {
  constexpr std::size_t many = 60;
  server_options limits;
  limits.connections = 100;
  limits.connections_per_peer = 1;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        tcp_stream first = co_await tcp_stream::connect(at);
        while (web.connections() == 0) co_await sleep_for(1ms);
        std::vector<tcp_stream> others;
        for (std::size_t i = 0; i < many; ++i) {
          tcp_stream one = co_await tcp_stream::connect(at);
          task<std::string> whole = read_until(one, "Unavailable\n");
          const std::string got = co_await std::move(whole);
          EXPECT_TRUE(got.starts_with("HTTP/1.1 503")) << got;
          others.push_back(std::move(one));
        }
        // It would take a second if the server waited for all of them.
        for (int i = 0; i < 10 && web.connections() >= many / 2; ++i) co_await sleep_for(50ms);
        EXPECT_LT(web.connections(), many / 2);
      },
      limits);
}

// The server is full and waits for a connection to end. Its task can be cancelled nevertheless.
TEST_P(http_limits, a_server_that_is_full_can_be_given_up) {
  server_options limits;
  limits.connections = 1;
  event go;
  bool is_answered = false;
  router routes;
  routes.get("/", [&go]() -> task<response> {
    co_await go.wait();
    co_return response::text("hello");
  });
  const auto all = [&]() -> task<> {
    http::server web(std::move(routes), limits);
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    const auto asks = [&]() -> task<> {
      const std::string got =
          co_await exchange(at, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      EXPECT_TRUE(got.ends_with("hello")) << got;
      is_answered = true;
    };
    future<> asking = spawn(asks());
    const auto until_full = [&]() -> task<> {
      while (web.connections() == 0) co_await sleep_for(1ms);
      co_await sleep_for(1ms);
    };
    auto either = when_any(web.serve(std::move(listener)), until_full());
    const auto how = co_await std::move(either);
    EXPECT_EQ(how.index(), 1u);
    EXPECT_FALSE(is_answered);
    go.set();
    co_await std::move(asking);
  };
  runtime rt(options());
  rt.spawn(all());
  rt.run();
  EXPECT_TRUE(is_answered);
}

TEST_P(http_limits, of_a_head) {
  server_options limits;
  limits.head_bytes = 1000;
  limits.target_bytes = 100;
  limits.fields = 5;
  const auto with_bytes = [](std::size_t bytes) {
    std::string head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: ";
    head.append(bytes - head.size() - 4, 'x');
    return head + "\r\n\r\n";
  };
  EXPECT_EQ(status_in(answer_to(some_routes(), with_bytes(1000), limits)), 200);
  EXPECT_EQ(status_in(answer_to(some_routes(), with_bytes(1001), limits)), 431);
  const auto with_target = [](std::size_t bytes) {
    return "GET /?" + std::string(bytes - 2, 'x') +
           " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  };
  EXPECT_EQ(status_in(answer_to(some_routes(), with_target(100), limits)), 200);
  EXPECT_EQ(status_in(answer_to(some_routes(), with_target(101), limits)), 414);
  const std::string fields =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA: 1\r\nB: 2\r\nC: 3\r\n";
  EXPECT_EQ(status_in(answer_to(some_routes(), fields + "\r\n", limits)), 200);
  EXPECT_EQ(status_in(answer_to(some_routes(), fields + "D: 4\r\n\r\n", limits)), 431);
}

TEST_P(http_limits, of_connections_of_one_peer) {
  server_options limits;
  limits.connections_per_peer = 3;
  std::string got;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        std::vector<tcp_stream> held;
        for (int i = 0; i < 3; ++i) {
          held.push_back(co_await tcp_stream::connect(at));
          co_await held.back().write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
          co_await read_until(held.back(), "hello");
        }
        got = co_await exchange(at, get_last);
        held.clear();
        while (web.connections() > 0) co_await sleep_for(1ms);
        got += " " + co_await exchange(at, get_last);
      },
      limits);
  EXPECT_EQ(status_in(got), 503);
  EXPECT_TRUE(got.ends_with("hello")) << got;
}

TEST_P(http_limits, of_connections_the_idle_ones_make_room) {
  server_options limits;
  limits.connections = 3;
  std::string got, first;
  run(
      some_routes(),
      [&](runtime&, http::server, endpoint at) -> task<> {
        std::vector<tcp_stream> held;
        for (int i = 0; i < 3; ++i) {
          held.push_back(co_await tcp_stream::connect(at));
          co_await held.back().write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
          co_await read_until(held.back(), "hello");
          co_await sleep_for(2ms);
        }
        got = co_await exchange(at, get_last);
        // This connection has been idle for the longest time.
        first = co_await read_to_end(held[0]);
        co_await held[2].write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        got += co_await read_until(held[2], "hello");
      },
      limits);
  EXPECT_EQ(status_in(got), 200);
  EXPECT_TRUE(got.ends_with("hello"));
  EXPECT_EQ(first, "");
}

TEST_P(http_limits, of_connections_that_are_busy_others_wait) {
  server_options limits;
  limits.connections = 2;
  troupe::event door;
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/waits", [door]() -> task<response> {
    co_await door.wait();
    co_return response::text("waited");
  });
  std::string got;
  bool early = false;
  run(
      std::move(routes),
      [&](runtime& rt, http::server, endpoint at) -> task<> {
        const std::string waits = "GET /waits HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        auto one = rt.spawn(exchange(at, waits)), two = rt.spawn(exchange(at, waits));
        co_await sleep_for(5ms);
        auto three = rt.spawn(exchange(at, get_last));
        co_await sleep_for(5ms);
        early = three.ready();
        door.set();
        got += co_await std::move(one);
        got += co_await std::move(two);
        got += co_await std::move(three);
      },
      limits);
  EXPECT_FALSE(early);
  EXPECT_TRUE(got.ends_with("hello")) << got;
}

TEST_P(http_limits, of_memory_the_idle_ones_make_room) {
  http::set_sharing_from(http::sharing_from_default);  // otherwise idle connections have no buffer
  server_options limits;
  limits.buffer_bytes = 20'000;  // the buffers of about four connections
  int heard = 0;
  std::size_t most = 0;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        std::vector<tcp_stream> held;
        for (int i = 0; i < 20; ++i) {
          held.push_back(co_await tcp_stream::connect(at));
          std::string answer;
          // The requests come so soon after each other that the connection is not parked.
          for (int request = 0; request < 8; ++request) {
            co_await held.back().write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            answer = co_await read_until(held.back(), "hello");
          }
          if (answer.ends_with("hello")) ++heard;
          most = std::max(most, web.connections());
        }
      },
      limits);
  EXPECT_EQ(heard, 20);
  EXPECT_LE(most, 8u);
}

TEST(http_options, that_make_no_sense) {
  const auto with = [](auto change) {
    server_options limits;
    change(limits);
    EXPECT_THROW(http::server(router(), limits), option_error);
  };
  with([](server_options& of) { of.head_bytes = 127; });
  with([](server_options& of) { of.connections = 0; });
  with([](server_options& of) { of.idle_time = 0s; });
  with([](server_options& of) { of.name = "a\r\nb"; });
}

struct timed {
  std::string answer;
  std::chrono::nanoseconds after{};
};

// Sends the parts with this time between them, and notes the answer and when the connection ends.
task<> send_slowly(endpoint at, std::vector<std::string> parts, std::chrono::nanoseconds between,
                   timed* to) {
  tcp_stream made = co_await tcp_stream::connect(at);
  const auto peer = std::make_shared<tcp_stream>(std::move(made));
  const std::chrono::nanoseconds begun = now();
  future<std::string> answer = spawn(read_to_end(peer));
  try {
    for (std::string& one : parts) {
      co_await peer->write_all(std::move(one));
      co_await sleep_for(between);
    }
  } catch (const io_error&) {
  }
  to->answer = co_await std::move(answer);
  to->after = now() - begun;
}

timed send_to(const runtime_options& options, std::vector<std::string> parts,
              std::chrono::nanoseconds between, const server_options& limits = {}) {
  timed got;
  runtime rt(options);
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    co_await send_slowly(at, parts, between, &got);
  };
  rt.spawn(serve_while(rt, http::server(some_routes(), limits), talk));
  rt.run();
  return got;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> each;
  for (const char one : text) each.emplace_back(1, one);
  return each;
}

void expect_about(std::chrono::nanoseconds got, std::chrono::nanoseconds wanted) {
  EXPECT_GE(got, wanted - 10ms);
  EXPECT_LE(got, wanted + 300ms);
}

TEST_P(http_times, a_head_in_time_and_too_late) {
  // Sends 66 bytes one by one.
  const std::vector<std::string> slow =
      bytes_of("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: 0123456789012\r\n\r\n");
  EXPECT_EQ(status_in(send_to(options(), slow, 150ms).answer), 200);
  const timed late = send_to(options(), slow, 160ms);
  EXPECT_EQ(status_in(late.answer), 408);
  const timed stuck = send_to(options(), {"GET / HT"}, 0ms);
  EXPECT_EQ(status_in(stuck.answer), 408);
  expect_about(stuck.after, 10s);
}

TEST_P(http_times, an_idle_connection_ends) {
  const timed silent = send_to(options(), {}, 0ms);
  EXPECT_EQ(silent.answer, "");
  expect_about(silent.after, 75s);
  const timed kept = send_to(options(), {"GET / HTTP/1.1\r\nHost: a\r\n\r\n"}, 0ms);
  EXPECT_TRUE(kept.answer.ends_with("hello"));
  expect_about(kept.after, 75s);
}

TEST_P(http_times, a_body_at_least_as_fast_as_must_be_and_slower) {
  const auto body = [](std::size_t at_once, int parts) {
    std::vector<std::string> all{
        "POST /pieces HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " +
        std::to_string(at_once * static_cast<std::size_t>(parts)) + "\r\n\r\n"};
    for (int i = 0; i < parts; ++i) all.emplace_back(at_once, 'x');
    return all;
  };
  EXPECT_EQ(status_in(send_to(options(), body(510, 60), 1s).answer), 200);
  const timed slow = send_to(options(), body(100, 60), 1s);
  EXPECT_EQ(status_in(slow.answer), 408);
  EXPECT_GE(slow.after, 5s);   // at least the grace time
  EXPECT_LE(slow.after, 15s);  // and lingers for another one
  server_options any;
  any.body_rate = 0;
  EXPECT_EQ(status_in(send_to(options(), body(1, 60), 1s, any).answer), 200);
}

TEST_P(http_times, a_peer_that_takes_nothing_is_given_up) {
  std::chrono::nanoseconds after{};
  runtime rt(options());
  const auto talk = [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    const auto begun = now();
    co_await peer.write_all("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await sleep_for(1s);
    while (web.connections() > 0) co_await sleep_for(10ms);
    after = now() - begun;
  };
  rt.spawn(serve_while(rt, http::server(some_routes()), talk));
  rt.run();
  expect_about(after, 20s);
}

// In one of the simulation's seeds the network carries few bytes at a time.
TEST_P(http_times, a_peer_that_takes_little_is_not) {
  const scratch folder;
  const std::string path = folder.put("large", std::string(300'000, 'x'));
  router routes = some_routes();
  routes.get("/file", [path]() -> task<response> {
    const file from = co_await file::open(path);
    co_return response::file(from, 0, 300'000, "text/plain");
  });
  std::string got;
  runtime rt(options());
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    std::array<char, 4096> part;
    for (std::size_t bytes = 1; bytes != 0;) {
      co_await sleep_for(1s);
      bytes = co_await peer.read(part);
      got.append(part.data(), bytes);
    }
  };
  rt.spawn(serve_while(rt, http::server(std::move(routes)), talk));
  rt.run();
  EXPECT_TRUE(got.ends_with("\r\n\r\n" + std::string(300'000, 'x'))) << got.size();
}

TEST_P(http_times, a_handler_may_take_as_long_as_it_likes) {
  router routes;
  routes.get("/", []() -> task<response> {
    co_await sleep_for(1h);
    co_return response::text("late");
  });
  EXPECT_TRUE(answer_to(std::move(routes), get_last).ends_with("late"));
}

std::vector<io_setting> simulated_settings() {
  return {{{policy::simulated, 1, 1}, io_backend::simulated},
          {{policy::simulated, 1, 2}, io_backend::simulated}};
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_limits);
INSTANTIATE_TEST_SUITE_P(backends, http_times, testing::ValuesIn(simulated_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace troupe::test
