// steered_proxy: a proxy between one node and its server. A test says what it does to the node's
// connections, from one moment to the next.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {

// Thread: any; start() and join() in a task. It must outlive join().
class steered_proxy {
 public:
  explicit steered_proxy(std::uint16_t port) : steered_proxy(endpoint::loopback(port)) {}
  explicit steered_proxy(endpoint upstream) : upstream_(upstream) {}
  steered_proxy(const steered_proxy&) = delete;
  steered_proxy& operator=(const steered_proxy&) = delete;

  void start() {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    at_ = listener.local();
    ended_ = spawn(accept(std::move(listener), *this, end_.get_token()));
  }
  std::uint16_t port() const { return at_.port(); }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port()); }
  task<> join() {
    end_.request_stop();
    reset();
    co_await std::move(ended_);
  }

  // Each piece takes a random time up to this one, in each direction.
  void delay(std::chrono::microseconds most) { delay_us_ = most.count(); }
  // Nothing passes towards the server, or back, as on a line that is cut: the kernel keeps what was
  // sent, and it comes when the line is whole again.
  void hold(bool there, bool back) { holds_there_ = there, holds_back_ = back; }
  // Ends all connections with a reset.
  void reset() {
    std::lock_guard held(mutex_);
    std::exchange(all_, std::stop_source()).request_stop();
  }
  int connections() const { return connections_; }

 private:
  struct connection {
    tcp_stream client, server;
    // What is closed with this option sends a reset.
    void reset() noexcept {
      for (tcp_stream* one : {&client, &server}) {
        const linger at_once{1, 0};
        if (!one->is_open()) continue;
        static_cast<void>(::setsockopt(one->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
        one->close();
      }
    }
  };

  std::stop_token token() {
    std::lock_guard held(mutex_);
    return all_.get_token();
  }

  static task<> accept(tcp_listener listener, steered_proxy& self, std::stop_token until) {
    std::vector<future<>> all;
    try {
      for (;;) {
        tcp_stream client = co_await listener.accept().stop(until);
        ++self.connections_;
        all.push_back(spawn(carry(std::move(client), self, self.token())));
      }
    } catch (const cancelled&) {
    }
    self.reset();  // also those that came after join() has begun
    for (future<>& one : all) co_await std::move(one);
  }

  static task<> carry(tcp_stream client, steered_proxy& self, std::stop_token until) {
    connection both;
    both.client = std::move(client);
    std::stop_source ends;
    const auto stops = [&ends]() noexcept { ends.request_stop(); };
    const std::stop_callback with_all(until, stops);
    try {
      both.server = co_await tcp_stream::connect(self.upstream_).stop(until);
      auto pumps = when_all(pump_to_end(both.client, both.server, self.holds_there_, self, ends),
                            pump_to_end(both.server, both.client, self.holds_back_, self, ends));
      co_await std::move(pumps);
    } catch (const io_error&) {
    } catch (const cancelled&) {
    }
    both.reset();
  }

  // The end of one direction ends both.
  static task<> pump_to_end(tcp_stream& from, tcp_stream& to, const std::atomic<bool>& holds,
                            steered_proxy& self, std::stop_source ends) {
    try {
      auto pumps = pump(from, to, holds, self, ends.get_token());
      co_await std::move(pumps);
    } catch (const io_error&) {
    } catch (const cancelled&) {
    }
    ends.request_stop();
  }

  static task<> pump(tcp_stream& from, tcp_stream& to, const std::atomic<bool>& holds,
                     steered_proxy& self, std::stop_token until) {
    std::array<char, 16'384> buffer;
    std::minstd_rand random(static_cast<std::minstd_rand::result_type>(self.connections_));
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer).stop(until);
      const std::int64_t most = self.delay_us_;
      if (most > 0) {
        const std::chrono::microseconds span(static_cast<std::int64_t>(random()) % most);
        co_await kit::stoppable_sleep(span).stop(until);
      }
      // sleeps: until the test has the line whole
      while (holds) co_await kit::stoppable_sleep(std::chrono::milliseconds(1)).stop(until);
      if (bytes == 0) throw cancelled("the other side has ended the connection");
      co_await to.write_all(std::string_view(buffer.data(), bytes)).stop(until);
    }
  }

  const endpoint upstream_;
  endpoint at_;
  std::atomic<std::int64_t> delay_us_{0};
  std::atomic<bool> holds_there_{false}, holds_back_{false};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::stop_source all_;  // of the connections of now
  std::stop_source end_;
  future<> ended_;
};

}  // namespace troupe::test
