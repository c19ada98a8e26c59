// chaos_proxy: a proxy between a client and a server. It does to their connections what networks
// do, as a seed chooses.
//
// Each connection has its own plan for each direction, which depends only on the fault, the seed
// and the number of the connection. So a test knows whether what it sent has to arrive
// (harmless()), and the seed repeats a failure.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <utility>

#include "support/counted.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {

enum class chaos : std::uint8_t {
  none,
  delays,
  single_bytes,
  reset,
  half_close,
  black_hole,
  damage,
  mixed
};
inline constexpr chaos all_chaos[] = {chaos::none,  chaos::delays,     chaos::single_bytes,
                                      chaos::reset, chaos::half_close, chaos::black_hole,
                                      chaos::mixed};

inline const char* name_of(chaos one) {
  constexpr const char* names[] = {"none",       "delays",     "single_bytes", "reset",
                                   "half_close", "black_hole", "damage",       "mixed"};
  return names[static_cast<std::size_t>(one)];
}

// What happens to one direction of a connection.
struct chaos_plan {
  static constexpr std::uint32_t never = UINT32_MAX;

  bool delays = false, single_bytes = false;
  chaos ends_by = chaos::none;  // reset, half_close, black_hole or damage;
  std::uint32_t after = never;  // happens when so many bytes have passed
  // A black hole that for a while does not even read: the sender's buffers fill up.
  bool deaf = false;

  bool harmless() const noexcept { return after == never; }
};

class chaos_proxy {
 public:
  struct numbers {
    std::atomic<int> connections{0}, live{0};
    std::atomic<int> faults{0};  // connections that a plan has ended or damaged
  };

  // Faults happen within the first `most` bytes of a direction.
  chaos_proxy(endpoint upstream, chaos does, std::uint64_t seed, std::uint32_t most = 4'000)
      : upstream_(upstream), does_(does), seed_(seed), most_(most) {}
  ~chaos_proxy() { stop(); }
  chaos_proxy(const chaos_proxy&) = delete;
  chaos_proxy& operator=(const chaos_proxy&) = delete;

  // Call it in a handler or a task.
  void start(runtime& rt) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    at_ = listener.local();
    ended_ = rt.spawn(accepts(rt, std::move(listener), *this, end_.get_token()));
  }
  endpoint at() const noexcept { return at_; }
  // Asks all connections to end.
  void stop() noexcept { end_.request_stop(); }
  // Ends when nothing of the proxy is left. The proxy must live until then.
  task<> join() {
    stop();
    co_await std::move(ended_);
  }

  // Returns the plans of the nth connection: towards the server, and back.
  std::pair<chaos_plan, chaos_plan> plan(int nth) const {
    std::minstd_rand random(random_of(nth));
    if (does_ == chaos::mixed) {
      // Half of the connections get through, though perhaps with delays or in single bytes.
      const bool fatal = random() % 2 == 0;
      chaos_plan there = harmless_plan(random), back = harmless_plan(random);
      if (fatal)
        end(random() % 2 == 0 ? there : back, all_fatal[random() % std::size(all_fatal)], random);
      return {there, back};
    }
    chaos_plan there, back;
    there.delays = back.delays = does_ == chaos::delays;
    there.single_bytes = back.single_bytes = does_ == chaos::single_bytes;
    if (std::ranges::find(all_fatal, does_) != std::end(all_fatal) || does_ == chaos::damage)
      end(random() % 2 == 0 ? there : back, does_, random);
    return {there, back};
  }
  bool harmless(int nth) const {
    const auto [there, back] = plan(nth);
    return there.harmless() && back.harmless();
  }

  numbers seen;

 private:
  static constexpr chaos all_fatal[] = {chaos::reset, chaos::half_close, chaos::black_hole};

  struct connection {
    tcp_stream client, server;
    counted alive;
    connection() {}
    // A real socket that is closed with this option sends a reset. A simulated one sends a reset
    // when it has unread bytes.
    void reset() noexcept {
      for (tcp_stream* stream : {&client, &server}) {
        const linger at_once{1, 0};
        if (stream->is_open())
          static_cast<void>(
              ::setsockopt(stream->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
        stream->close();
      }
    }
  };

  std::minstd_rand::result_type random_of(int nth) const {
    const std::uint64_t mixed =
        (seed_ + static_cast<std::uint64_t>(nth) * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    return static_cast<std::minstd_rand::result_type>((mixed >> 33) % 2147483646 + 1);
  }
  static chaos_plan harmless_plan(std::minstd_rand& random) {
    chaos_plan plan;
    plan.delays = random() % 3 == 0;
    plan.single_bytes = random() % 3 == 0;
    return plan;
  }
  void end(chaos_plan& plan, chaos how, std::minstd_rand& random) const {
    plan.ends_by = how;
    plan.after = static_cast<std::uint32_t>(random() % most_);
    plan.deaf = random() % 2 == 0;
  }

  static task<> accepts(runtime& rt, tcp_listener listener, chaos_proxy& self,
                        std::stop_token until) {
    std::vector<future<>> all;
    try {
      for (;;) {
        tcp_stream client = co_await listener.accept().stop(until);
        const int nth = self.seen.connections++;
        all.push_back(rt.spawn(carry(std::move(client), self, nth, until)));
      }
    } catch (const cancelled&) {
    }
    for (future<>& one : all) co_await std::move(one);
  }

  static task<> carry(tcp_stream client, chaos_proxy& self, int nth, std::stop_token until) {
    ++self.seen.live;
    connection both;
    both.client = std::move(client);
    try {
      both.server = co_await tcp_stream::connect(self.upstream_).stop(until);
      const auto [there, back] = self.plan(nth);
      std::minstd_rand random(self.random_of(nth) ^ 1U);
      auto pumps = when_all(pump(both.client, both.server, both, there, random, self, until),
                            pump(both.server, both.client, both, back, random, self, until));
      co_await std::move(pumps);
    } catch (const io_error&) {
      both.reset();
    } catch (const cancelled&) {
    }
    both.client.close();
    both.server.close();
    --self.seen.live;
  }

  // Both directions are branches of one task: they never run at the same time.
  static task<> pump(tcp_stream& from, tcp_stream& target, connection& both, chaos_plan plan,
                     std::minstd_rand& random, chaos_proxy& self, std::stop_token until) {
    try {
      const bool whole = co_await pass(from, target, plan, random, until);
      if (whole) {
        target.shutdown_write();
        co_return;
      }
      ++self.seen.faults;
      if (plan.ends_by == chaos::reset) {
        both.reset();
        co_return;
      }
      if (plan.ends_by == chaos::half_close) target.shutdown_write();
      if (plan.ends_by == chaos::black_hole && plan.deaf)
        co_await sleep_for(std::chrono::milliseconds(20));
      co_await swallow(from, until);
    } catch (const io_error&) {  // one side has reset, so the other side is reset, too
      both.reset();
    } catch (const cancelled&) {
    } catch (const usage_error&) {  // the other direction has closed both in the meantime
    }
  }

  static task<> swallow(tcp_stream& from, std::stop_token until) {
    std::array<char, 4096> unread;
    for (;;) {
      const std::size_t bytes = co_await from.read(unread).stop(until);
      if (bytes == 0) break;
    }
  }

  // Returns true at the end of the stream, and false where the plan ends this direction.
  static task<bool> pass(tcp_stream& from, tcp_stream& target, chaos_plan plan,
                         std::minstd_rand& random, std::stop_token until) {
    std::array<char, 4096> buffer;
    std::uint32_t passed = 0;
    for (;;) {
      const std::size_t room = plan.delays ? 1 + random() % buffer.size() : buffer.size();
      const std::size_t bytes = co_await from.read(std::span<char>(buffer).first(room)).stop(until);
      if (bytes == 0) co_return true;
      const bool last = !plan.harmless() && bytes > plan.after - passed;
      std::size_t part = last ? plan.after - passed : bytes;
      if (last && plan.ends_by == chaos::damage) {
        buffer[part] = static_cast<char>(buffer[part] ^ 0x40);
        part = bytes;
        plan.after = chaos_plan::never;
      }
      if (plan.delays) co_await sleep_for(std::chrono::microseconds(random() % 500));
      if (plan.single_bytes) {
        for (std::size_t i = 0; i < part; ++i)
          co_await target.write_all(std::string_view(&buffer[i], 1)).stop(until);
      } else {
        co_await target.write_all(std::string_view(buffer.data(), part)).stop(until);
      }
      passed += static_cast<std::uint32_t>(part);
      if (last && plan.ends_by != chaos::damage) co_return false;
    }
  }

  const endpoint upstream_;
  const chaos does_;
  const std::uint64_t seed_;
  const std::uint32_t most_;
  endpoint at_;
  std::stop_source end_;
  future<> ended_;
};

}  // namespace troupe::test
