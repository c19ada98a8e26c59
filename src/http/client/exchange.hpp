// exchange: one request on one connection, and its answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/client_wire.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/client_message.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/http/url.hpp"

namespace troupe::http {

class client_core : public std::enable_shared_from_this<client_core> {
 public:
  explicit client_core(client_options chosen);
  // Makes the context when it is first needed, on a thread that may block: the system's store of
  // certificates is large.
  task<tls_context> trust(tasks::limits within);
  wire_ptr make_wire(tcp_stream plain) const {
    return std::make_unique<client_wire>(std::move(plain), limits);
  }
  wire_ptr make_wire(tls_stream secure) const {
    return std::make_unique<client_wire>(std::move(secure), limits);
  }

  const client_options options;
  const parser_limits limits;
  wire_pool pool;

 private:
  std::optional<tls_context> known_trust();

  std::mutex mutex_;
  std::optional<tls_context> trust_;
};

// Returns a new connection to the origin of `to`. Throws resolve_error, io_error, tls_error,
// timed_out, cancelled.
task<wire_ptr> connect(client_core& core, const url& to, const tasks::limits& within);

class exchange {
 public:
  exchange(std::shared_ptr<client_core> by, url at, tasks::limits within)
      : core_(std::move(by)),
        at_(std::move(at)),
        where_(at_.to_string()),
        life_(std::move(within)) {}
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  // Sends the head, with the part of the body that is sent together with it.
  task<> send(std::string_view bytes);
  task<> send_chunk(std::string_view bytes);
  // Reads the head of the answer, and skips interim answers (1xx).
  task<> read_head(http::method asked);
  task<std::string_view> next_piece();
  task<std::string> read_all();

  void on(wire_ptr wire) noexcept { wire_ = std::move(wire); }
  // Allows an answer 101. The caller then takes the connection with take_wire().
  void may_upgrade() noexcept { may_upgrade_ = true; }
  wire_ptr take_wire() noexcept { return std::move(wire_); }
  // True when a byte of the answer has come.
  bool heard() const noexcept { return heard_; }
  // True when the connection did not take all of the request.
  bool refused_bytes() const noexcept { return refused_bytes_; }
  const url& at() const noexcept { return at_; }
  const std::string& where() const noexcept { return where_; }
  const tasks::limits& life() const noexcept { return life_; }

  int status() const noexcept { return head_.status; }
  std::string_view reason() const noexcept { return head_.reason; }
  http::fields fields() const noexcept { return {head_text_.data(), head_positions_}; }
  http::fields trailer() const noexcept { return {trailer_text_.data(), trailer_positions_}; }
  std::optional<std::uint64_t> length() const noexcept {
    return head_.has_length ? std::optional(head_.length) : std::nullopt;
  }

 private:
  static constexpr int interim_max = 16;  // interim answers (1xx) before the final one

  task<> read_head_within(http::method asked, tasks::limits soon);
  task<parser::step> next_step(const tasks::limits& within);
  task<bool> receive(const tasks::limits& within);
  void keep_head(const message_head& head);
  void keep_trailer(const http::fields& trailer);
  void finish();
  [[noreturn]] void refuse(fault why);
  [[noreturn]] void end_early();
  [[noreturn]] void throw_slow() const;

  const std::shared_ptr<client_core> core_;
  const url at_;
  const std::string where_;
  const tasks::limits life_;
  wire_ptr wire_;
  message_head head_;  // its views point into head_text_, or are empty
  std::string head_text_, trailer_text_;
  std::vector<http::fields::position> head_positions_, trailer_positions_;
  std::size_t consumed_ = 0;  // by the piece that the caller still reads
  // for the next read, because the read that fetched it was cancelled
  std::optional<parser::step> piece_;
  paced_arrival body_;
  bool keep_ = true, heard_ = false, done_ = false, refused_bytes_ = false, is_read_ = false;
  bool is_slow_ = false;  // its body was too slow
  bool may_upgrade_ = false;
  bool cut_off_ = false;  // a part of the request was sent, and the rest will never be
};

// Removes the fields with these names.
void strip(std::string& fields, std::initializer_list<std::string_view> names);

// Gives the library access to private members of the public types.
class client_access {
 public:
  static client_response make(std::shared_ptr<exchange> of) noexcept {
    return client_response(std::move(of));
  }
  static exchange& of(const client_response& answer) noexcept { return *answer.of_; }
  static std::string& method(client_request& asked) noexcept { return asked.method_; }
  static std::string& fields(client_request& asked) noexcept { return asked.fields_; }
  static std::string& body(client_request& asked) noexcept { return asked.body_; }
  static upload_function& upload(client_request& asked) noexcept { return asked.upload_; }
  static bool& has_body(client_request& asked) noexcept { return asked.has_body_; }
  static bool ranged(const client_request& asked) noexcept { return asked.ranged_; }
};

}  // namespace troupe::http
