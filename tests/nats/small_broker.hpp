// A NATS server that is small enough for a simulated program, and may be cut off, slow or wrong.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/io.hpp"
#include "troupe/nats/connection.hpp"

namespace troupe::test {

class small_broker {
 public:
  // Call it in a task.
  void start(runtime& rt) {
    on = &rt;
    listen_options weak;
    weak.weak = true;
    auto listener = tcp_listener::listen(endpoint::loopback(0), weak);
    at_ = listener.local();
    rt.spawn(serve(rt, std::move(listener)));
  }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(at_.port()); }

  // Ends all connections.
  void cut() {
    for (const peer_ptr& one : peers()) one->ends.request_stop();
  }
  runtime* on = nullptr;
  // What is said to each client instead of INFO, or behind its first PONG.
  std::string greeting, then_says;
  std::atomic<bool> silent{false};  // neither answers nor reads
  std::atomic<bool> ends{false};    // after the greeting
  int connections() const { return connections_; }

 private:
  struct peer {
    explicit peer(tcp_stream of) : stream(std::move(of)) {}
    tcp_stream stream;  // its two tasks use it, and the last one closes it
    std::stop_source ends;
    const channel<std::string> out = channel<std::string>::unbounded();
    std::map<std::string, std::string> subscriptions;  // sid: pattern
    bool answered = false;
  };
  using peer_ptr = std::shared_ptr<peer>;
  using letters = std::vector<std::pair<peer_ptr, std::string>>;

  std::vector<peer_ptr> peers() {
    std::lock_guard held(mutex_);
    return peers_;
  }

  task<> serve(runtime& rt, tcp_listener listener) {
    for (;;) {
      tcp_stream accepted = co_await listener.accept();
      ++connections_;
      const auto one = std::make_shared<peer>(std::move(accepted));
      {
        std::lock_guard held(mutex_);
        peers_.push_back(one);
      }
      rt.spawn(guard(one, talk(one)));
      rt.spawn(guard(one, write(one)));
    }
  }
  task<> guard(peer_ptr one, task<> does) {
    try {
      co_await std::move(does);
    } catch (const error&) {
      // How a connection ends is for the client to check.
    }
    one->ends.request_stop();
    std::lock_guard held(mutex_);
    std::erase(peers_, one);
  }
  static task<> write(peer_ptr one) {
    for (;;) {
      auto waits = one->out.receive();
      const auto text = co_await std::move(waits).stop(one->ends.get_token());
      if (!text) co_return;
      co_await one->stream.write_all(std::string_view(*text)).stop(one->ends.get_token());
    }
  }

  task<> talk(peer_ptr one) {
    std::string says =
        R"(INFO {"server_id":"small","max_payload":1048576,"headers":true,"proto":1})"
        "\r\n";
    if (!greeting.empty()) says = greeting;
    co_await one->stream.write_all(std::string_view(says)).stop(one->ends.get_token());
    if (ends) co_return;
    std::string input;
    std::array<char, 4096> buffer;
    for (;;) {
      const std::size_t bytes = co_await one->stream.read(buffer).stop(one->ends.get_token());
      if (bytes == 0) co_return;
      // sleeps: as long as it is told to
      while (silent) co_await sleep_for(std::chrono::milliseconds(1));
      input.append(buffer.data(), bytes);
      // One connection's bytes after the other: what was routed to a reader is in its line before
      // the answer to a PING behind its UNSUB.
      std::lock_guard routes(routing_);
      letters out;
      while (take(one, input, out)) {
      }
      for (auto& [to, text] : out) to->out.try_send(std::move(text));
    }
  }

  static std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> all;
    while (!line.empty()) {
      const std::size_t space = std::min(line.find(' '), line.size());
      all.emplace_back(line.substr(0, space));
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    return all;
  }
  static bool fits(std::string_view pattern, std::string_view subject) {
    for (;;) {
      const std::size_t a = pattern.find('.'), b = subject.find('.');
      const std::string_view token = pattern.substr(0, a);
      if (token == ">") return true;
      if (token != "*" && token != subject.substr(0, b)) return false;
      if (a == std::string_view::npos || b == std::string_view::npos) return a == b;
      pattern.remove_prefix(a + 1);
      subject.remove_prefix(b + 1);
    }
  }

  // One command; false: it is not there yet.
  bool take(const peer_ptr& from, std::string& input, letters& out) {
    const std::size_t end = input.find("\r\n");
    if (end == std::string::npos) return false;
    const std::vector<std::string> words = words_of(std::string_view(input).substr(0, end));
    const std::string& command = words.front();
    std::size_t bytes = end + 2;
    if (command == "PUB" || command == "HPUB") {
      const std::size_t payload = std::stoul(words.back());
      if (input.size() < bytes + payload + 2) return false;
      publish(words, input.substr(bytes, payload + 2), out);
      bytes += payload + 2;
    } else if (command == "SUB") {
      std::lock_guard held(mutex_);
      from->subscriptions[words.back()] = words[1];
    } else if (command == "UNSUB") {
      std::lock_guard held(mutex_);
      from->subscriptions.erase(words[1]);
    } else if (command == "PING") {
      out.emplace_back(from, "PONG\r\n");
      if (!std::exchange(from->answered, true) && !then_says.empty())
        out.emplace_back(from, then_says);
    }
    input.erase(0, bytes);
    return true;
  }
  void publish(const std::vector<std::string>& words, const std::string& payload, letters& out) {
    const bool head = words[0] == "HPUB";
    const bool reply = words.size() > (head ? 4u : 3u);
    const std::string numbers = head ? words[words.size() - 2] + " " + words.back() : words.back();
    const std::size_t before = out.size();
    for (const auto& [to, sid] : readers_of(words[1]))
      out.emplace_back(to, (head ? "HMSG " : "MSG ") + words[1] + " " + sid + " " +
                               (reply ? words[2] + " " : "") + numbers + "\r\n" + payload);
    if (out.size() > before || !reply) return;
    for (const auto& [to, sid] : readers_of(words[2]))
      out.emplace_back(to, "HMSG " + words[2] + " " + sid + " 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
  }
  std::vector<std::pair<peer_ptr, std::string>> readers_of(const std::string& subject) {
    std::vector<std::pair<peer_ptr, std::string>> all;
    std::lock_guard held(mutex_);
    for (const peer_ptr& one : peers_) {
      for (const auto& [sid, pattern] : one->subscriptions) {
        if (fits(pattern, subject)) all.emplace_back(one, sid);
      }
    }
    return all;
  }

  endpoint at_;
  std::mutex routing_, mutex_;
  std::vector<peer_ptr> peers_;
  std::atomic<int> connections_{0};
};

inline std::vector<io_setting> broker_settings() {
  std::vector<io_setting> all{{{policy::work_stealing, 2, 1}, io_backend::epoll},
                              {{policy::work_stealing, 2, 1}, io_backend::io_uring}};
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u})
    all.push_back({{policy::simulated, 1, seed}, io_backend::simulated});
  return all;
}

class broker_fixture : public io_conformance {
 protected:
  // Runs body(broker, options) as a task; all descriptors are closed afterwards.
  using body = task<> (*)(small_broker&, nats::options);
  void run(body what, nats::options chosen = {}) {
    const int before = open_files();
    {
      small_broker broker;
      runtime rt(options());
      auto both = [](runtime& runs, small_broker& serves, body does, nats::options how) -> task<> {
        serves.start(runs);
        task<> tests = does(serves, std::move(how));
        co_await std::move(tests);
        serves.cut();
      };
      future<> done = rt.spawn(both(rt, broker, what, std::move(chosen)));
      rt.run();
      done.get();
    }
    EXPECT_EQ(open_files(), before);
  }
};

}  // namespace troupe::test
