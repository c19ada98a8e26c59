// stream_transport: the bytes of a WebSocket over a stream of HTTP/2 (RFC 8441).
//
// Threads: the task's that uses the WebSocket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "http/client/streams/stream_exchange.hpp"
#include "http/h1/send_order.hpp"
#include "troupe/http/transport.hpp"

namespace troupe::http {

class stream_transport final : public transport {
 public:
  // `over` was answered: the server has opened the WebSocket.
  stream_transport(std::shared_ptr<stream_exchange> over, const client_options& options) noexcept
      : over_(std::move(over)),
        write_time_(options.write_time),
        pace_{options.body_rate, options.body_grace} {}

  task<std::size_t> receive(std::span<char> room, std::chrono::nanoseconds at_most) override;
  task<> send(std::string_view bytes) override { co_await send_owned(std::string(bytes)); }
  task<> send_owned(std::string bytes) override;
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override;
  task<> end_with_peer() override;
  slowest_pace message_pace() const noexcept override { return pace_; }

 private:
  void check(const char* operation, int number) const;
  bool take_some();

  const std::shared_ptr<stream_exchange> over_;
  const std::chrono::nanoseconds write_time_;
  const slowest_pace pace_;
  std::string piece_;  // that has come, and is unread from `at_` on
  std::size_t at_ = 0;
  send_order order_;
};

}  // namespace troupe::http
