// What the HTTP tests share: a server and its client in one program, under some of the I/O
// settings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "http/server/server_state.hpp"
#include "support/io.hpp"
#include "troupe/http/server.hpp"

namespace troupe::test {

// Each backend, with one thread and with several, and the simulated network.
inline std::vector<io_setting> http_settings() {
  std::vector<io_setting> all{{{policy::work_stealing, 2, 1}, io_backend::epoll},
                              {{policy::work_stealing, 2, 1}, io_backend::io_uring},
                              {{policy::work_stealing, 1, 1}, io_backend::epoll},
                              {{policy::simulated, 1, 1}, io_backend::simulated},
                              {{policy::simulated, 1, 2}, io_backend::simulated}};
  return all;
}

inline task<std::string> read_to_end(tcp_stream& from) {
  std::string all;
  std::array<char, 4096> buffer;
  try {
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer);
      if (bytes == 0) break;
      all.append(buffer.data(), bytes);
    }
  } catch (const io_error& e) {
    all += std::string("[") + e.what() + "]";
  }
  co_return all;
}

// The same for a task of its own, which may outlive its spawner when the program ends.
inline task<std::string> read_to_end(std::shared_ptr<tcp_stream> from) {
  task<std::string> reads = read_to_end(*from);
  co_return co_await std::move(reads);
}

// Reads until the text ends with `end`.
inline task<std::string> read_until(tcp_stream& from, std::string end) {
  std::string all;
  std::array<char, 1> buffer;
  while (!all.ends_with(end)) {
    const std::size_t bytes = co_await from.read(buffer);
    if (bytes == 0) break;
    all.append(buffer.data(), bytes);
  }
  co_return all;
}

// Sends these bytes and returns everything that comes, up to the end of the connection.
inline task<std::string> exchange(endpoint at, std::string bytes) {
  tcp_stream made = co_await tcp_stream::connect(at);
  const auto peer = std::make_shared<tcp_stream>(std::move(made));
  // Reads while it writes: a server that cannot send its answers stops reading.
  future<std::string> answer = spawn(read_to_end(peer));
  try {
    co_await peer->write_all(std::move(bytes));
  } catch (const io_error&) {  // the server has sent all that it wanted to send
  }
  std::string got = co_await std::move(answer);
  co_return got;
}

// Removes the Date field, whose value differs each time.
inline std::string undated(std::string answer) {
  for (;;) {
    const std::size_t at = answer.find("Date: ");
    if (at == std::string::npos) return answer;
    answer.erase(at, answer.find("\r\n", at) + 2 - at);
  }
}

using client = std::function<task<>(runtime&, http::server, endpoint)>;

inline task<> serve_while(runtime& rt, http::server web, client talk) {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  future<> serving = rt.spawn(web.serve(std::move(listener)));
  std::exception_ptr failed;
  try {
    task<> talking = talk(rt, web, at);
    co_await std::move(talking);
  } catch (...) {
    failed = std::current_exception();
  }
  web.stop();
  co_await std::move(serving);
  if (failed != nullptr) std::rethrow_exception(failed);
}

class http_conformance : public io_conformance {
 protected:
  // Where there are many connections, they share their buffers. Some of the settings always use
  // this, the others never.
  void SetUp() override {
    io_conformance::SetUp();
    if (GetParam().on.workers == 1 && GetParam().on.seed != 1) http::set_sharing_from(0);
    if (GetParam().by == io_backend::epoll && GetParam().on.workers == 2) http::set_sharing_from(0);
  }
  void TearDown() override { http::set_sharing_from(http::sharing_from_default); }

  // Runs the client to its end, then the server, then everything else.
  void run(http::router routes, client talk, const http::server_options& limits = {}) {
    runtime rt(options());
    rt.spawn(serve_while(rt, http::server(std::move(routes), limits), std::move(talk)));
    rt.run();
  }
  // Returns the answer to some bytes.
  std::string answer_to(http::router routes, std::string bytes,
                        const http::server_options& limits = {}) {
    std::string got;
    run(
        std::move(routes),
        [&](runtime&, http::server, endpoint at) -> task<> {
          got = undated(co_await exchange(at, bytes));
        },
        limits);
    return got;
  }
};

}  // namespace troupe::test

#define TROUPE_HTTP_TEST_EACH(suite)                                         \
  INSTANTIATE_TEST_SUITE_P(                                                  \
      backends, suite, ::testing::ValuesIn(::troupe::test::http_settings()), \
      [](const auto& parameter) { return ::troupe::test::name_of(parameter.param); })
