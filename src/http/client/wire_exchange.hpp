// wire_exchange: an exchange by HTTP/1.1, which has a connection of its own until its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/client/exchange.hpp"

namespace troupe::http {

class wire_exchange final : public exchange {
 public:
  using exchange::exchange;

  task<> send_request(client_request& asked, const route& by, const std::string& lines) override;
  task<> send_piece(std::string_view bytes) override;  // as a chunk
  task<std::string_view> next_encoded() override;
  // Sends the head, with the part of the body that is sent together with it.
  task<> send(std::string_view bytes);

  void on(wire_ptr wire) noexcept { wire_ = std::move(wire); }
  // Allows an answer 101. The caller then takes the connection with take_wire().
  void may_upgrade() noexcept { may_upgrade_ = true; }
  wire_ptr take_wire() noexcept { return std::move(wire_); }

 private:
  task<> read_head_within(http::method asked, tasks::limits soon) override;
  void give_up() noexcept override { wire_.reset(); }
  task<parser::step> next_step(const tasks::limits& within);
  task<bool> receive(const tasks::limits& within);
  void finish();
  task<> server_end();
  [[noreturn]] void refuse(fault why);
  [[noreturn]] void end_early();

  wire_ptr wire_;
  std::size_t consumed_ = 0;  // by the piece that the caller still reads
  // for the next read, because the read that fetched it was cancelled
  std::optional<parser::step> piece_;
  bool keep_ = true;
  bool may_upgrade_ = false;
};

}  // namespace troupe::http
