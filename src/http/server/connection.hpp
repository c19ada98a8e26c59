// connection: one peer's requests, one after the other, and their answers. All of it but the stream
// itself: that is connection_over<Stream>'s (connection_over.hpp).
//
// Requests that have come together are answered together: advance() goes through the input for as
// long as it needs nobody, puts the answers of handlers that do not wait into the output, and says
// what is to be done then. Threads: the flow of its task; `expiry_ns_`, `phase_` and end() are
// anybody's who holds the server's mutex.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "http/h1/input.hpp"
#include "http/h1/output.hpp"
#include "http/server/gone_watch.hpp"
#include "http/server/parked.hpp"
#include "http/server/server_state.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/http/request.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/transport.hpp"

namespace troupe::http {

class connection : public transport, private request_source {
 public:
  explicit connection(std::shared_ptr<server_state> of, const connection_past& was = {});
  connection(const connection&) = delete;

  // fresh: idle, before the first request
  enum class phase : std::uint8_t { fresh, idle, head, busy, upgraded };
  using ending = connection_ending;

  // By who holds the server's mutex: what is awaited ends as cancelled.
  void end(ending why) noexcept;
  void revive();
  // After end(parking): it goes on as before. False when it was asked to end by now.
  bool stay();
  bool may_park() const noexcept;
  std::int64_t expiry_ns() const noexcept;
  std::int64_t idle_since_ns() const noexcept;
  // When it is to be parked, if nothing comes.
  std::int64_t parking_ns() const noexcept;
  // order: relaxed  a hint: its end may come as a request does
  phase phase_now() const noexcept { return phase_.load(std::memory_order_relaxed); }
  // It may be ended to make room: idle, and if it is fresh for long enough.
  static bool is_idle(phase at, std::int64_t since_ns, std::int64_t now_ns) noexcept;
  // What a handler has thrown; the caller's from now on.
  std::exception_ptr take_failure() noexcept { return std::exchange(failure_, nullptr); }
  // And what that may refer to; it may go on another thread while the connection is still there.
  owned_context failed_memory() noexcept {
    empty_memory_.reset();
    return std::move(memory_);
  }

 protected:
  virtual ~connection();
  enum class next : std::uint8_t {
    read,   // more input is needed
    write,  // the output first
    serve,  // a request that waits for something
    close,  // the output, and that was it
  };

  next advance();
  // After next::serve. True when the connection can go on.
  task<bool> serve();
  // When the peer has ended.
  void peer_ended();

  // Nothing more is to be sent, or only what a wait lets through.
  bool is_ended() const noexcept {
    // order: relaxed  who ends it just now meets the next wait
    const ending why = ending_.load(std::memory_order_relaxed);
    return why != ending::none && why != ending::parking && why != ending::draining;
  }

  // The time of what is awaited is limited from here on, or not any more.
  void begin_wait(phase now_in, std::chrono::nanoseconds span, std::int64_t now_ns) noexcept;
  void end_wait() noexcept;
  void wait_for_head(std::int64_t now_ns) noexcept;
  void wait_for_handshake(std::int64_t now_ns) noexcept;
  void refuse(fault why);
  void refuse_for_now();
  void count_buffers() noexcept;
  // No request is under way.
  void give_memory_back() noexcept;
  // The stream that is read from, below TLS.
  virtual stream& wire() noexcept = 0;
  // The client has gone, as an operation has shown.
  void tell_gone() noexcept {
    if (watch_ != nullptr) watch_->tell();
  }
  // Nothing has come of the next request.
  bool is_between() const noexcept { return in_.empty() && !parser_.inside(); }
  // Requests have not come so soon after each other that the next one is worth being waited for
  // with all that there is.
  bool is_slow() const noexcept { return past_.pace < pace_most; }

  static constexpr std::uint8_t pace_most = 4;

  const std::shared_ptr<server_state> server_;
  connection_past past_;
  bool parks_ = false;  // streams of its kind can
  std::stop_source idle_stop_, busy_stop_;
  input in_;
  output out_;
  // the peer may still be sending: read on for a while, so that it sees the answer
  bool lingers_ = false;
  bool leaves_ = false;      // the next request is the last
  bool closing_ = false;     // after this one
  bool incomplete_ = false;  // an answer is, so far
  bool cut_off_ = false;     // something was sent in part, and its rest will never be
  bool broken_ = false;      // nothing can be sent, or nothing received, any more
  std::atomic<phase> phase_{phase::busy};
  std::atomic<ending> ending_{ending::none};
  std::int64_t head_expiry_ns_ = 0;  // of the head that is being read; 0: none has begun

 private:
  friend struct server_state;
  using event = parser::event;
  // of answers, that are sent before more are made
  static constexpr std::size_t flush_bytes = 64 * 1024;
  static constexpr std::size_t skipped_bytes_max = 64 * 1024;  // of a body that nobody wants
  // of room for a body, until the next one
  static constexpr std::size_t kept_body_bytes = 64 * 1024;

  bool take_head();
  void begin_memory();
  bool run_handler();
  bool collect_here();
  bool not_found();
  void answer(response& with);
  void add_head(const response& with, int status, bool has_length, std::uint64_t length,
                bool chunked);
  void add_status(int status);
  void answer_plainly(int status, std::string_view fields = {});
  bool decode_path();
  void find_route();
  void close_after_this() noexcept;
  void finish_request() noexcept;
  std::uint64_t body_limit() const noexcept;

  task<std::string_view> next_piece() final;
  std::stop_token client_gone() final;
  void watch_client() noexcept;
  std::size_t unread_bytes() const noexcept;
  task<> end_watch();
  task<> await_body();
  task<> collect();
  task<> flush();
  task<> skip_body();
  task<> send_part(const file_part& part);
  task<> send_stream(response& with);
  task<> talk(response& with);
  task<> answer_waiting(response& with);
  void answer_exception(std::exception_ptr thrown);

  parser parser_;
  http::request request_;
  owned_context memory_;  // of the request; none while the connection is idle
  std::optional<snapshot> empty_memory_;
  // what a handler threw: it may refer to the memory, and goes before it
  std::exception_ptr failure_;
  router::found route_;
  std::string path_;  // decoded, if it had to be
  response answer_;
  bool body_ended_ = false;
  bool is_read_ = false;
  bool silent_ = false;        // to HEAD there is no body
  bool continue_due_ = false;  // the peer waits for it
  bool answer_begun_ = false;
  bool collect_first_ = false;
  std::uint64_t body_bytes_ = 0;
  std::int64_t body_waited_ns_ = 0;
  std::string_view piece_;  // of the body, for the next read: the one that it came for was given up
  input body_in_;           // of a body that is longer than what came with its head
  bool reads_aside_ = false;
  bool may_watch_ = false;  // it is in serve(), and not talking by another protocol
  bool is_gone_ = false;    // its client, as the watch said
  bool made_room_ = false;  // for its body, so that the watch sees what comes behind that
  gone_watch_ptr watch_;    // of this request, if its handler has asked for it
  std::size_t counted_ = 0;

  std::atomic<std::int64_t> expiry_ns_{0}, idle_since_ns_{0};
  connection* next_ = nullptr;  // these are the server's
  connection** link_ = nullptr;
};

}  // namespace troupe::http
