// A server of HTTP/2 for tests, which follows a script: frame by frame, right or wrong.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/client/scripted.hpp"
#include "http/h2/h2_peer.hpp"

namespace troupe::test::h2 {

inline const field_pairs status_200{{":status", "200"}};

inline std::string answer_of(std::int32_t stream, const std::string& body = "") {
  return ask(stream, status_200, body.empty()) +
         (body.empty() ? "" : frame_of(data, end_stream, stream, body));
}
inline std::string reset_of(std::int32_t stream, std::uint32_t code) {
  return frame_of(rst_stream, 0, stream, number(code, 4));
}
inline std::string goaway_of(std::uint32_t last, std::uint32_t code = no_error) {
  return frame_of(goaway, 0, 0, number(last, 4) + number(code, 4));
}

// What a script sees of one connection: the next frames of the client, and what to send.
class told_peer {
 public:
  told_peer(tcp_stream&& over, int number_of) : frames_(std::move(over)), number(number_of) {}

  // The number of the next request's stream; 0 at the end.
  task<std::int32_t> next_request() {
    if (std::exchange(is_new_, false) && !co_await greeted()) co_return 0;
    const std::optional<frame> one = co_await frames_.next_of(headers);
    co_return one ? one->stream : 0;
  }
  task<> send(std::string bytes) { co_await frames_.send_what_fits(std::move(bytes)); }
  peer& frames() { return frames_; }

 private:
  task<bool> greeted() {
    std::array<char, 24> preface;
    const std::size_t bytes = co_await frames_.stream().read_exact(preface);
    EXPECT_EQ(std::string(preface.data(), bytes), magic);
    co_await frames_.send_what_fits(first);
    co_return bytes == preface.size();
  }
  peer frames_;
  bool is_new_ = true;

 public:
  const int number;  // of the connection, from 1 on
  std::string first = settings_of({});
};
using peer_script = std::function<task<>(told_peer&)>;

class scripted_peer {
 public:
  explicit scripted_peer(peer_script says) : says_(std::move(says)) {}
  void start(runtime& rt) {
    listen_options weak;
    weak.weak = true;
    auto listener = tcp_listener::listen(endpoint::loopback(0), weak);
    at_ = listener.local();
    rt.spawn(serve(rt, std::move(listener)));
  }
  std::string url(const std::string& target = "/") const {
    return "http://127.0.0.1:" + std::to_string(at_.port()) + target;
  }
  int connections() const { return connections_.load(); }

 private:
  task<> serve(runtime& rt, tcp_listener listener) {
    for (;;) {
      tcp_stream peer = co_await listener.accept();
      rt.spawn(talk(std::move(peer), ++connections_));
    }
  }
  task<> talk(tcp_stream over, int number_of) {
    told_peer one(std::move(over), number_of);
    try {
      co_await says_(one);
    } catch (const error&) {
    }
  }

  const peer_script says_;
  endpoint at_;
  std::atomic<int> connections_{0};
};

class peer_conformance : public io_conformance {
 protected:
  using asking = std::function<task<>(scripted_peer& server, http::client web)>;

  void run(peer_script says, asking what, http::client_options chosen = {}) {
    const int before = open_files();
    {
      chosen.http2_prior_knowledge = true;
      scripted_peer server(std::move(says));
      runtime rt(options());
      const auto both = [&](http::client web) -> task<> {
        server.start(rt);
        task<> asked = what(server, web);
        co_await std::move(asked);
        web.close_idle();
      };
      rt.spawn(both(http::client(std::move(chosen))));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
};

}  // namespace troupe::test::h2
