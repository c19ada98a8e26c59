// exchange: one request of an HTTP/2 connection, and its answer, on one stream.
//
// Threads: the connection's task and its children, one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/accounts/account.hpp"
#include "base/invariant.hpp"
#include "http/h1/send_order.hpp"
#include "http/h2/framing/header_lines.hpp"
#include "http/h2/framing/server_session.hpp"
#include "http/server/calls/call_end.hpp"
#include "http/server/calls/one_at_a_time.hpp"
#include "http/server/calls/request_progress.hpp"
#include "http/server/handling.hpp"
#include "http/server/server_state.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/certificate.hpp"

namespace troupe::http {
class reopened_file;
}

namespace troupe::http::h2 {

class exchange;

// The connection that carries exchanges, as they use it. Threads: the connection's task and its
// children, unless a function says otherwise.
class carrier : protected server_session_events {
 public:
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;

  server_state& server() noexcept { return server_; }
  server_session& session() noexcept { return *session_; }
  header_lines& lines() noexcept { return lines_; }
  void wake_writer() noexcept { to_send_.set(); }
  // The handler of this stream has ended. May destroy the exchange.
  virtual void exchange_done(std::int32_t stream) = 0;
  // Gives a window for the bytes that were kept back, if the client's account has room for more, or
  // the stream is the oldest one that waits.
  virtual void give_window(exchange& request) = 0;
  // Caller: any thread, with the ledger's mutex. Streams are over budget.
  virtual void end_streams_soon() noexcept = 0;
  // A stream has just got more. Ends streams at once if the client is past its budget.
  virtual void keep_to_budget() = 0;
  // Whether the request's client has room for so much more.
  virtual bool reserve(exchange& request, std::size_t bytes) noexcept = 0;
  // The connection ends when the requests that have arrived are answered.
  virtual void end_after_this() = 0;
  virtual endpoint peer() = 0;
  virtual bool has_address() const noexcept = 0;
  virtual bool secure() const noexcept = 0;
  virtual std::optional<tls_certificate> client_certificate() = 0;

 protected:
  carrier(server_state& server, std::unique_ptr<server_session> session) noexcept
      : server_(server), session_(std::move(session)) {}
  ~carrier() = default;

  server_state& server_;
  const std::unique_ptr<server_session> session_;
  header_lines lines_;
  event to_send_;
};

class exchange final : public handling, private transport {
 public:
  // `ends`: the request has no body.
  exchange(carrier& connection, std::int32_t stream, head_block&& head, bool ends);
  ~exchange() { TROUPE_INVARIANT(handler_ != handler_stage::waits, "C3"); }
  // Its memory is kept for the next one, like the memory of a coroutine of this size.
  static void* operator new(std::size_t bytes) { return tasks::allocate_frame(bytes); }
  static void operator delete(void* at, std::size_t bytes) noexcept {
    tasks::deallocate_frame(at, bytes);
  }

  // ---- input from the client ----
  void came(std::string_view piece);
  void ended(head_block&& trailer);
  // The stream no longer exists, or the connection.
  void closed() noexcept;
  // The client has ended its half of the connection: nothing more comes. `counts`: it counts as
  // gone. A WebSocket finds that behind the messages that have arrived before.
  void cut(bool counts) noexcept;
  // Bytes that were kept back may be sent again.
  std::size_t take_kept_back() noexcept;

  // ---- output to the client ----
  std::size_t more(std::span<char> room, bool& ends);
  // Whether there are bytes for the client, which waits for nothing but to take them.
  bool is_sending() const noexcept { return !unsent_.empty() || progress_.answer_is_partly_sent(); }

  // How much longer the client may take none of it; the largest time while there is nothing to
  // take. At least body_rate bytes a second are to be taken, and none for write_time at most.
  std::chrono::nanoseconds patience_for_client(std::int64_t now_ns) noexcept;

  // Answers at once if that is possible. Otherwise it returns false, and serve() is to be run.
  bool begin();
  task<> serve();

  // Whether bytes that were taken are kept, since no window was given for them yet.
  bool is_kept_back() const noexcept {
    return kept_back_ != 0 && !progress_.body_ended() && !is_done() && !is_closed();
  }
  bool is_collecting() const noexcept { return collects() && !progress_.body_ended(); }
  std::size_t collected() const noexcept {
    return collects() ? unread_.size() + request_.collected_.size() : 0;
  }
  // How many bytes are kept for this stream, in this object and below it.
  std::size_t kept_bytes() const noexcept;
  std::size_t files() const noexcept;
  // Ends the stream, and frees all that can be freed at once.
  void give_up() noexcept;
  // The client that a trusted proxy names; null if the connection's client is the one.
  base::account* account() noexcept { return account_.get(); }
  void count_for_client() noexcept;
  std::int32_t stream() const noexcept { return stream_; }
  // Whether the client of account() asked for too much.
  // order: relaxed  see own_account::end_account
  bool is_over_budget() const noexcept { return is_over_budget_.load(std::memory_order_relaxed); }
  bool is_done() const noexcept { return handler_ == handler_stage::ended; }
  // At the connection's end: serve() will not resume.
  void forget_handler() noexcept { handler_ = handler_stage::ended; }
  bool is_closed() const noexcept { return progress_.is_closed(); }
  // The whole answer was given to the session, and the rest of the request is of no use.
  bool is_unread() const noexcept { return !progress_.body_ended(); }

 private:
  // The use of the request's body.
  enum class body_use : std::uint8_t {
    streamed,   // read by the handler
    collected,  // before the handler runs
    websocket,
  };
  bool collects() const noexcept { return use_ == body_use::collected; }
  bool is_websocket() const noexcept { return use_ == body_use::websocket; }

  fault read_head(bool ends);
  fault decode_collected();
  bool run_at_once();
  void answer(response&& with);
  void begin_answer(const response& with, bool has_length, std::uint64_t length, bool has_body);
  task<> run_handler_later();
  task<> answer_waiting();
  task<> send_stream();
  task<> send_part();
  task<> await_window(reopened_file& from);
  task<std::uint64_t> send_parts(reopened_file& from, std::uint64_t offset, std::uint64_t bytes);
  bool must_wait(const response::special& part) const noexcept;
  void took(std::size_t bytes);
  task<> talk();
  void answer_exception(std::exception_ptr thrown, bool is_cancelled);
  void finish() noexcept;
  void end_answer();
  // Waits until something has arrived, or the stream has ended, for at most that time.
  task<> await_news(std::chrono::nanoseconds at_most, std::stop_token stop = {});
  [[noreturn]] void throw_gone() const;

  task<std::string_view> next_encoded() override;
  endpoint peer() override;
  bool has_address() const noexcept override;
  bool secure() const noexcept override;
  bool is_lost() const noexcept override { return is_closed(); }
  std::stop_token client_gone() override;
  std::optional<tls_certificate> client_certificate() override;

  task<> peer_end();
  task<std::size_t> receive(std::span<char> room, std::chrono::nanoseconds at_most) override;
  task<> send(std::string_view bytes) override;
  task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                std::uint64_t bytes) override;
  task<> send_owned(std::string bytes) override;
  slowest_pace message_pace() const noexcept override;
  void retains(std::size_t bytes) noexcept override;
  void count_kept() noexcept override;
  bool reserve_encoder(std::size_t bytes) noexcept override;

  // The account of a stream that comes by a trusted proxy.
  class own_account final : public base::account {
   public:
    own_account(exchange& owner, server_state& server, std::string_view client);
    ~own_account() override;
    void end_account() noexcept override;

   private:
    exchange& exchange_;
    server_state& server_;
    server_state::client_peer& peer_;
  };
  // Its client asked for too much; set by any thread.
  std::atomic<bool> is_over_budget_{false};

  carrier& carrier_;
  const std::int32_t stream_;
  head_block block_;
  std::optional<head_block> trailer_;
  message_head head_;
  fault wrong_ = fault::none;  // why the request, or its body, is refused
  response answer_;

  std::string unread_, piece_;  // of the body: bytes without a reader yet; the reader's piece now
  std::size_t kept_back_ = 0;   // bytes that were taken, and for which no window was given yet
  paced_arrival body_;
  std::optional<event> news_;
  std::stop_source gone_;

  std::string_view unsent_;  // of the answer's body; refers to `pending_` or to `answer_`
  std::string pending_;
  std::optional<event> taken_;
  send_order order_;
  paced_arrival taking_;               // the answer's body, by the client
  std::int64_t sending_since_ns_ = 0;  // counted until then; 0: nothing is to be taken
  std::size_t above_bytes_ = 0;        // kept by a WebSocket
  std::size_t queued_bytes_ = 0;       // that wait for their turn to be sent
  std::size_t files_ = 0;              // that are open to be sent
  std::unique_ptr<own_account> account_;

  request_progress progress_;  // partly sent: a file, of which there is more than `unsent_`
  body_use use_ = body_use::streamed;
  one_at_a_time::slot reading_;
  call_end* call_ = nullptr;  // of the WebSocket that is talked over
  bool silent_ = false;       // the request is HEAD: its answer has no body
  // `waits`: serve() runs, and refers to this object. At its end a handler that ran at once has set
  // `ended`, and serve() does not wait again.
  enum class handler_stage : std::uint8_t { none, waits, ended };
  handler_stage handler_ = handler_stage::none;
};

}  // namespace troupe::http::h2
