// connection: reads the requests of one client, one after the other, and answers them. It does not
// use its stream: the derived class connection_over<Stream> (connection_over.hpp) owns that.
//
// Requests that arrived together are answered together. advance() goes through the input for as
// long as no request has to wait, puts the answers of handlers that do not wait into the output,
// and returns the next step of its caller.
//
// Threads: the connection's own task. Other threads use its live_connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/accounts/account.hpp"
#include "http/h1/input.hpp"
#include "http/h1/output.hpp"
#include "http/server/calls/call_end.hpp"
#include "http/server/calls/closing.hpp"
#include "http/server/calls/gone_watch.hpp"
#include "http/server/calls/one_at_a_time.hpp"
#include "http/server/calls/request_progress.hpp"
#include "http/server/calls/serving.hpp"
#include "http/server/calls/wire_health.hpp"
#include "http/server/handling.hpp"
#include "http/server/live_connection.hpp"
#include "http/server/parked.hpp"
#include "http/server/server_state.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/http/response.hpp"

namespace troupe::http {

struct websocket_terms;

namespace h2 {
class conversation;
}

class connection : public live_connection, protected handling {
 public:
  // `counted`: the client whose share the connection's memory counts against.
  connection(std::shared_ptr<server_state> owner, server_state::client_peer& counted,
             const connection_past& was = {});
  connection(const connection&) = delete;

  // Makes the handler's exception a failure of the program.
  void report() noexcept { report_failure(); }

 protected:
  ~connection() override;
  enum class next : std::uint8_t {
    read,   // more input is needed
    write,  // the output must be written first
    serve,  // the current request has to wait for something
    close,  // write the output, then close the connection
  };

  next advance();
  // Call it after next::serve. Returns true when the connection can read further requests.
  task<bool> serve();
  // Call it when the peer has ended its half of the connection.
  void peer_ended();

  // A gone_watch waits for the end of the client, in the reactor.
  bool is_watched() const noexcept { return watch_ != nullptr && watch_->is_armed(); }
  // For the next request: idle until its first byte is here.
  void wait_for_head(std::int64_t now_ns) noexcept;
  // The time of the last answer, if nothing was awaited since it began; otherwise now.
  std::int64_t now_after_answers();
  void refuse(fault why);
  void refuse_request(fault why);
  void refuse_for_now();
  void count_buffers() noexcept;
  void retains(std::size_t bytes) noexcept final {
    above_bytes_ = bytes;
    count_buffers();
  }
  void count_kept() noexcept final { count_buffers(); }
  bool reserve_encoder(std::size_t bytes) noexcept final;
  // A parked connection keeps nothing; its client may have disconnected when the call returns.
  void stop_counting() noexcept {
    account_.close();
    leave_client();
  }
  void start_counting() noexcept { account_.open(server_->kept, client_); }
  // Bytes that are being sent, or wait for their turn, as long as it lives.
  class queued {
   public:
    queued(connection& owner, std::size_t bytes) noexcept : connection_(owner), bytes_(bytes) {
      connection_.queued_bytes_ += bytes_;
      connection_.count_buffers();
    }
    queued(const queued&) = delete;
    ~queued() { connection_.queued_bytes_ -= bytes_; }

   private:
    connection& connection_;
    const std::size_t bytes_;
  };
  // How many bytes are kept in this object and below it.
  std::size_t kept_bytes() const noexcept;
  // Read and write as the stream's functions, for HTTP/2. A read is ended by end(); a read that is
  // `patient` is not ended by end(draining).
  virtual task<std::size_t> read_wire(std::span<char> to, bool patient) = 0;
  virtual task<std::size_t> write_wire(std::string_view bytes) = 0;
  // Writes as many bytes as the system takes now.
  virtual std::size_t write_wire_at_once(std::string_view bytes) noexcept = 0;
  // An operation has shown that the client has disconnected.
  void tell_gone() noexcept {
    if (watch_ != nullptr) watch_->tell();
  }
  // True when no byte of the next request has arrived.
  bool is_between() const noexcept { return input_.empty() && !parser_.inside(); }
  // True when requests do not follow each other fast enough. Only after fast requests does an idle
  // connection keep its task and its buffers while it waits for the next one.
  bool is_slow() const noexcept { return past_.pace < pace_most; }

  static constexpr std::uint8_t pace_most = 4;

  const std::shared_ptr<server_state> server_;
  connection_past past_;
  input input_;
  output out_;
  closing closing_;
  wire_health health_;
  request_progress progress_;
  call_end* call_ = nullptr;  // of the WebSocket that is talked over
  // By base::now_ns(), if the request is counted, and nothing was awaited since; otherwise 0.
  std::int64_t answered_ns_ = 0;

 private:
  friend class h2::conversation;
  using event = parser::event;
  // Once there are so many bytes of answers, they are sent before more answers are made.
  static constexpr std::size_t flush_bytes = 64 * 1024;
  static constexpr std::size_t skipped_bytes_max = 64 * 1024;  // of a body that no handler reads
  // The most capacity for a body that is kept until the next request.
  static constexpr std::size_t kept_body_bytes = 64 * 1024;

  bool take_head();
  bool run_handler_here();
  bool collect_here();
  bool not_found();
  void answer(response& with);
  void add_head(const response& with, int status, bool has_length, std::uint64_t length,
                bool chunked);
  void add_status(int status);
  void answer_plainly(int status, std::string_view fields = {});
  void set_reset_at_end(bool on) noexcept;
  void finish_request() noexcept;

  task<std::string_view> next_encoded() final;
  task<> peer_end();
  std::stop_token client_gone() final;
  void watch_client() noexcept;
  bool is_client_gone() const noexcept;
  gone_watch::half_close half_close() const noexcept;
  void watch_for(call_end& ends, gone_watch::half_close how);
  std::size_t unread_bytes() const noexcept;
  task<> end_watch();
  task<> await_body();
  task<> collect();
  task<> flush();
  task<> skip_body();
  task<> send_part(const file_part& part);
  task<> send_stream(response& with);
  task<> talk_over(response& with, websocket_terms terms);
  task<> talk(response& with);
  task<> answer_waiting(response& with);
  void answer_exception(std::exception_ptr thrown, bool is_cancelled);
  void find_client() noexcept;
  bool count_for_client() noexcept;
  void leave_client() noexcept;

  std::int64_t program_began_ns_ = 0;  // by base::now_ns(); 0: not known yet
  parser parser_;
  response answer_;
  serving serving_;
  one_at_a_time::slot reading_;
  bool silent_ = false;  // the request is HEAD: its answer has no body
  paced_arrival body_;
  // a piece of the body for the next read, because the read that fetched it was cancelled
  std::string_view piece_;
  // the rest of a body that did not arrive whole with its head; it is read from here then
  std::optional<input> body_in_;
  gone_watch_ptr watch_;  // of this request, if its handler has asked for it
  // The memory that the connection keeps, HTTP/2 included.
  struct own_account final : base::account {
    explicit own_account(connection& owner) noexcept : owner_(owner) {}
    void end_account() noexcept override { owner_.server_->end_over_budget(owner_); }

   private:
    connection& owner_;
  };
  own_account account_;
  // The client that a trusted proxy names, while a request of it keeps more than a little, or its
  // handler may wait.
  server_state::client_peer* behind_ = nullptr;
  server_state::client_peer* moved_to_ = nullptr;  // for which the connection itself also counts
  std::size_t above_bytes_ = 0;                    // by a WebSocket
  std::size_t queued_bytes_ = 0;                   // that wait for their turn to be sent
  std::size_t files_ = 0;                          // that are being sent
};

}  // namespace troupe::http
