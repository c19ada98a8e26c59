// stream_exchange: an exchange by HTTP/2, on a stream of a connection that others use as well.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/client/exchange.hpp"
#include "http/client/streams/stream_connection.hpp"

namespace troupe::http {

class stream_exchange final : public exchange {
 public:
  // `on` has a place for it.
  stream_exchange(std::shared_ptr<client_resources> by, url at, tasks::limits within,
                  std::shared_ptr<stream_connection> on)
      : exchange(std::move(by), std::move(at), std::move(within)), on_(std::move(on)) {}
  ~stream_exchange() override;

  task<> send_request(client_request& asked, const route& by, const std::string& lines) override;
  task<> send_piece(std::string_view bytes) override;
  task<std::string_view> next_encoded() override;
  refusal refused() const override;

  // Whether the server allows connect(). Waits for its first SETTINGS.
  task<bool> may_connect();
  // send_request() asks by a CONNECT that names this protocol, and the stream carries its bytes.
  void connect(std::string protocol) noexcept { protocol_ = std::move(protocol); }
  stream_connection& on() const noexcept { return *on_; }
  asked_stream& stream() const noexcept { return *stream_; }

 private:
  class sent_piece;
  task<> read_head_within(http::method asked, tasks::limits soon) override;
  void give_up() noexcept override;
  task<> await_taken(std::string_view bytes, bool is_last);
  void take_head();
  void finish();
  task<> server_end();
  // Waits until something has changed on the stream; the caller has reset `news`.
  task<> await_news(tasks::limits within);
  [[noreturn]] void throw_failure();

  const std::shared_ptr<stream_connection> on_;
  const stream_ptr stream_ = on_->new_stream();
  std::chrono::nanoseconds asked_at_{0};
  std::string piece_, protocol_;
  bool is_open_ = false;
};

}  // namespace troupe::http
