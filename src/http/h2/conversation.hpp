// conversation: runs one HTTP/2 connection: reads, starts handlers, writes. It exists as long as
// the connection, even while that is parked; then it has no streams.
//
// The connection's task reads. A child of it writes the output that handlers leave; each handler
// that waits is also a child. All of this therefore runs one at a time, without a lock.
// Invariants
//   C1  at most one of the reader and the writer writes, between begin() and end() of `writes_`.
//   C2  neither receive() nor send() of the session is called within one of its events.
//   C3  an exchange is destroyed when its handler has ended and its stream no longer exists.
//
// Threads: the connection's task and its children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "http/h1/output.hpp"
#include "http/h2/connection_stages.hpp"
#include "http/h2/exchange.hpp"
#include "http/h2/framing/server_session.hpp"
#include "http/server/server_state.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/scope.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/certificate.hpp"

namespace troupe::http {
class connection;
}

namespace troupe::http::h2 {

// The first bytes of a client of HTTP/2.
inline constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Whether HTTP/2 allows that cipher (RFC 9113, 9.2.2): forward secrecy and authenticated
// encryption, as all of TLS 1.3 have. `name`: OpenSSL's.
bool is_allowed_cipher(std::string_view name) noexcept;

// Whether this server speaks HTTP/2.
bool is_on(const server_options& options) noexcept;

class conversation final : public carrier {
 public:
  explicit conversation(server_state& server);
  ~conversation();

  // Runs until the connection ends, or is idle and is to be parked: then the result is true.
  // `begun`: bytes that have arrived already.
  task<bool> run(connection& on, std::string begun);

  // Before run(): the connection ends, since its cipher is one that HTTP/2 does not allow.
  void refuse_cipher() { session_->terminate(code::inadequate_security); }

  // ---- for exchanges ----
  void exchange_done(std::int32_t stream) override;
  void give_window(exchange& request) override;
  void end_streams_soon() noexcept override;
  void keep_to_budget() override;
  bool reserve(exchange& request, std::size_t bytes) noexcept override;
  void end_after_this() override;
  endpoint peer() override;
  bool has_address() const noexcept override;
  bool secure() const noexcept override;
  std::optional<tls_certificate> client_certificate() override;

 private:
  bool on_request(std::int32_t stream, head_block&& head, bool ends) override;
  void on_body(std::int32_t stream, std::string_view piece) override;
  void on_end(std::int32_t stream, head_block&& trailer) override;
  void on_closed(std::int32_t stream, bool by_peer) override;
  void on_answered(std::int32_t stream) override;
  std::size_t more_of(std::int32_t stream, std::span<char> to, bool& ends) override;
  void on_pong() override;

  task<> read_all(task_scope& branches, std::string_view begun, std::exception_ptr& failed);
  task<> read_on(task_scope& branches);
  task<> write_all();
  task<> take(task_scope& branches, std::string_view bytes);
  task<> flush_soon();
  task<> flush_at_end();
  task<> write_pending();
  task<> await_exchanges();
  bool fill(std::size_t most);
  bool ask_why();
  bool must_end() const noexcept;
  bool is_busy() const noexcept;
  void drain();
  void break_off() noexcept;
  void fail_blocked() noexcept;
  void give_windows();
  void watch_time() noexcept;
  void count_buffers() noexcept;
  const base::account& account_of(exchange& request) noexcept;
  bool end_streams();
  void end_late_streams();
  void note_written(std::size_t bytes) noexcept {
    out_at_ += bytes;
    written_ += bytes;
  }
  // Whether a trusted proxy is the connection's client.
  bool is_from_proxy() const noexcept;
  bool has_room(exchange& request) noexcept;
  exchange* oldest_kept_back() noexcept;
  void end_stream(std::int32_t number, exchange& request);
  exchange* find(std::int32_t stream) noexcept;
  void count_end() noexcept;

  static constexpr std::size_t read_bytes = 16 * 1024, quick_bytes = 16 * 1024,
                               write_bytes = 64 * 1024;

  connection* on_ = nullptr;
  std::unordered_map<std::int32_t, std::unique_ptr<exchange>> exchanges_;
  std::vector<std::int32_t> ready_;  // requests that have arrived with the last bytes
  output out_;
  std::size_t out_at_ = 0;  // bytes of `out_` that were written
  std::unique_ptr<char[]> room_;
  event all_done_;
  std::int64_t inside_since_ns_ = 0;  // 0: nothing is incomplete
  std::int64_t progress_ns_ = 0;      // when bytes were last written to the connection, or could be
  std::uint64_t written_ = 0, written_before_ = 0;  // bytes; at the last watch_time()
  reader_stage reader_;
  write_stage writes_;
  goaway_stage goaway_;
  excess counted_ = excess::none;  // that ended the session, and was counted
  bool has_more_ = false;          // the session had more to send than fits
  bool broken_ = false;            // no bytes can be sent any more
  bool renewed_ = false;           // streams were ended for the budget, and the read may have been
};

}  // namespace troupe::http::h2
