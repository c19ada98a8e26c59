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

#include "http/client/streams/kept_socket.hpp"
#include "http/client/streams/stream_exchange.hpp"
#include "http/h1/send_order.hpp"
#include "troupe/http/transport.hpp"

namespace troupe::http {

class stream_transport final : public kept_transport {
 public:
  // `over` was answered: the server has opened the WebSocket.
  stream_transport(std::shared_ptr<stream_exchange> over,
                   const std::shared_ptr<client_resources>& core, const url& at)
      : over_(std::move(over)),
        write_time_(core->options.write_time),
        pace_{core->options.body_rate, core->options.body_grace},
        kept_(core, at.origin(), at.to_string(), *this) {}

  task<std::size_t> receive(std::span<char> room, std::chrono::nanoseconds at_most) override;
  task<> send(std::string_view bytes) override { co_await send_owned(std::string(bytes)); }
  task<> send_owned(std::string bytes) override;
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override;
  task<> end_with_peer() override;
  slowest_pace message_pace() const noexcept override { return pace_; }
  void retains(std::size_t bytes) noexcept override { kept_.count(bytes + piece_.capacity()); }
  void frees_by(free_function free, websocket* keeper) noexcept override {
    kept_.frees_by(free, keeper);
  }
  void lay_down() noexcept override { kept_.lay_down(); }
  bool take_up() noexcept override { return kept_.take_up(); }
  bool is_ended() const noexcept override { return kept_.is_ended(); }
  void check_kept() const override { kept_.check(); }

 private:
  void check(const char* operation, int number) const;
  bool take_some();
  void end_freed() noexcept override;

  const std::shared_ptr<stream_exchange> over_;
  const std::chrono::nanoseconds write_time_;
  const slowest_pace pace_;
  std::string piece_;  // that has arrived, and is unread from `at_` on; under the mutex of `on()`
  std::size_t at_ = 0;
  send_order order_;
  kept_socket kept_;
};

}  // namespace troupe::http
