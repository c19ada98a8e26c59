// An HTTP client and a server with a bad network between them: each answer is the right one, or a
// typed error. No connection, descriptor or handler is left.
#include <fstream>

#include "http/client/scripted.hpp"
#include "support/chaos_proxy.hpp"
#include "support/scratch.hpp"
#include "troupe/http/files.hpp"
#include "troupe/http/server.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int lines = 300;
constexpr std::size_t file_bytes = 20'000;

std::string all_lines() {
  std::string all;
  for (int i = 0; i < lines; ++i) all += std::to_string(i) + "\n";
  return all;
}

http::router routes(const std::string& folder) {
  http::router made;
  made.get("/n/{number}", [](int number) { return http::response::text(std::to_string(number)); });
  made.get("/lines", [] {
    return http::response::stream("text/plain",
                                  [alive = counted()](http::body_writer& to) -> task<> {
                                    for (int i = 0; i < lines; ++i)
                                      co_await to.write(std::to_string(i) + "\n");
                                  });
  });
  made.post("/echo", [](http::request& asked) -> task<http::response> {
    const counted alive;
    std::string all;
    for (;;) {
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      all += piece;
    }
    co_return http::response::owned(std::move(all), "application/octet-stream");
  });
  made.files("/files/", folder);
  return made;
}

http::server_options server_limits(bool harmless) {
  http::server_options limits;
  if (harmless) return limits;
  limits.head_time = limits.body_grace = limits.idle_time = limits.write_time = 40ms;
  limits.body_rate = 1'000'000;
  return limits;
}

http::client_options client_limits(bool harmless) {
  http::client_options limits;
  if (harmless) return limits;
  limits.connect_time = limits.head_time = limits.write_time = limits.body_grace = 40ms;
  limits.body_rate = 1'000'000;
  return limits;
}

bool is_harmless(chaos does) {
  return does == chaos::none || does == chaos::delays || does == chaos::single_bytes;
}

bool is_typed(const std::string& how) {
  for (const char* one :
       {"bad_response", "too_slow", "truncated", "closed", "timed_out", "io_error", "tls_error"}) {
    if (how == one) return true;
  }
  return false;
}

// Whether this is what the server answers to half a request, or to one that is too slow.
bool is_complaint(int status) { return status == 400 || status == 408; }

struct tally {
  int right = 0, failed = 0;
};

void judge(const std::string& got, const std::string& wanted, tally& seen) {
  if (got == wanted) {
    ++seen.right;
  } else {
    EXPECT_TRUE(is_typed(got) || is_complaint(std::atoi(got.c_str()))) << got.substr(0, 100);
    ++seen.failed;
  }
}

task<> ask(http::client web, std::string at, int rounds, tally& seen) {
  const std::string posted(3'000, 'p');
  for (int i = 0; i < rounds; ++i) {
    const std::string number = co_await outcome_of(web.get(at + "/n/" + std::to_string(i)));
    judge(number, "200 " + std::to_string(i), seen);
    const std::string listed = co_await outcome_of(web.get(at + "/lines"));
    judge(listed, "200 " + all_lines(), seen);
    const std::string file = co_await outcome_of(web.get(at + "/files/large"));
    judge(file, "200 " + std::string(file_bytes, 'f'), seen);
    const std::string echoed =
        co_await outcome_of(web.post(at + "/echo", posted, "application/octet-stream"));
    judge(echoed, "200 " + posted, seen);
    http::client_request pieces("POST", at + "/echo");
    http::upload_function how = [alive = counted()](http::upload& to) -> task<> {
      for (int part = 0; part < 30; ++part) co_await to.write(std::string(100, 'x'));
    };
    pieces.body(std::move(how), "text/plain");
    const std::string uploaded = co_await outcome_of(web.send(std::move(pieces)));
    judge(uploaded, "200 " + std::string(3'000, 'x'), seen);
  }
  web.close_idle();
}

// Writes beside the task that reads: a peer that answers at once may stop reading until its answers
// are read.
task<> say(std::shared_ptr<tcp_stream> to, std::string said, std::chrono::nanoseconds patience) {
  try {
    co_await to->write_all(std::move(said)).timeout(patience);
  } catch (const io_error&) {  // the reading task finds out
  } catch (const timed_out&) {
  } catch (const cancelled&) {
  }
}

// Sends sixteen requests at once. The answers come in order, as far as they come.
task<int> pipelined(endpoint at, bool harmless) {
  constexpr int deep = 16;
  const std::chrono::nanoseconds patience = harmless ? 30s : 60ms;
  int answered = 0;
  try {
    tcp_stream connected = co_await tcp_stream::connect(at).timeout(patience);
    const auto peer = std::make_shared<tcp_stream>(std::move(connected));
    std::string asked;
    for (int i = 0; i < deep; ++i)
      asked += "GET /n/" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    future<> saying = spawn(say(peer, std::move(asked), patience));
    http::parser reading(http::side::responses);
    std::string input, body;
    std::array<char, 1000> buffer;
    while (answered < deep) {
      const http::parser::step step = reading.next(input);
      body += step.body;
      if (step.what == http::parser::event::refused) ADD_FAILURE() << http::text_of(reading.why());
      if (step.what == http::parser::event::refused) break;
      if (step.what == http::parser::event::head) {
        if (!harmless && is_complaint(reading.head().status)) break;
        EXPECT_EQ(reading.head().status, 200);
      }
      if (step.what == http::parser::event::end) {
        EXPECT_EQ(body, std::to_string(answered++));
        body.clear();
      }
      input.erase(0, step.consumed);
      if (step.what != http::parser::event::need_more) continue;
      const std::size_t bytes = co_await peer->read(buffer).timeout(patience);
      if (bytes == 0) break;
      input.append(buffer.data(), bytes);
    }
  } catch (const io_error&) {
  } catch (const timed_out&) {
  }
  if (harmless) {
    EXPECT_EQ(answered, deep);
  }
  co_return answered;
}

struct fixed {
  chaos does;
  std::uint64_t seed;
  std::string folder;
  std::optional<tls_context> self;
  tls_options trust;
  fixed(chaos one, std::uint64_t by, std::string files)
      : does(one), seed(by), folder(std::move(files)) {}
};

task<> converse(runtime& rt, const fixed& on, tally& seen, int& answered, int& faults) {
  const bool harmless = is_harmless(on.does);
  http::server server(routes(on.folder), server_limits(harmless));
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  chaos_proxy proxy(listener.local(), on.does, on.seed, 4'000);
  proxy.start(rt);
  future<> serving = on.self ? rt.spawn(server.serve(std::move(listener), *on.self))
                             : rt.spawn(server.serve(std::move(listener)));
  http::client_options limits = client_limits(harmless);
  limits.tls = on.trust;
  const http::client web(std::move(limits));
  const std::string url =
      (on.self ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(proxy.at().port());
  co_await ask(web, url, fewer(2), seen);
  if (!on.self) {
    for (int i = 0; i < fewer(4); ++i) answered += co_await pipelined(proxy.at(), harmless);
  }
  co_await proxy.join();
  EXPECT_EQ(proxy.seen.live.load(), 0);
  faults = proxy.seen.faults.load();
  server.stop();
  co_await std::move(serving);
  EXPECT_EQ(server.connections(), 0u);
}

class http_chaos : public client_conformance {
 protected:
  void check(fixed on) {
    const int before = open_files();
    tally seen;
    int answered = 0, faults = 0;
    {
      runtime rt(options());
      rt.spawn(converse(rt, on, seen, answered, faults));
      rt.run();
    }
    const std::string name = std::string(name_of(on.does)) + " " + std::to_string(on.seed);
    if (is_harmless(on.does)) {
      EXPECT_EQ(seen.failed, 0) << name;
      EXPECT_EQ(faults, 0) << name;
    } else if (on.does != chaos::mixed) {
      EXPECT_GT(faults, 0) << name;
      EXPECT_GT(seen.failed, 0) << name;
    }
    all_faults_ += faults;
    EXPECT_EQ(open_files(), before) << name;
    EXPECT_EQ(live.load(), 0) << name;
  }
  scratch files_;
  int all_faults_ = 0;
};

TEST_P(http_chaos, answers_are_right_or_typed_errors) {
  files_.put("large", std::string(file_bytes, 'f'));
  for (const chaos does : all_chaos) check({does, GetParam().on.seed, files_ / ""});
  for (std::uint64_t more = 1; !slow && more <= 3; ++more)
    check({chaos::mixed, GetParam().on.seed + 100 * more, files_ / ""});
}

TEST_P(http_chaos, answers_over_tls_are_right_or_typed_errors) {
  static const authority root("the authority");
  static const identity own = root.issue({.names = "IP:127.0.0.1"});
  files_.put("large", std::string(file_bytes, 'f'));
  for (const auto& [does, seed] : {std::pair(chaos::single_bytes, 1u),
                                   {chaos::mixed, 2u},
                                   {chaos::mixed, 3u},
                                   {chaos::mixed, 4u}}) {
    fixed on(does, GetParam().on.seed + 100 * seed, files_ / "");
    on.self = tls_context::server(showing(own));
    on.trust.ca_pem = root.certificate();
    check(std::move(on));
  }
  if (!slow) {
    EXPECT_GT(all_faults_, 0);
  }
}

}  // namespace

TROUPE_CLIENT_TEST_EACH(http_chaos);

}  // namespace troupe::test
