// connection_over: owns the stream of a connection, and runs the loop that reads and writes it.
// Instantiated in serve.cpp.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/invariant.hpp"
#include "http/h1/send_order.hpp"
#include "http/h2/conversation.hpp"
#include "http/secure/secret_stream.hpp"
#include "http/server/accept/admission_ticket.hpp"
#include "http/server/parked.hpp"
#include "http/server/server_connection.hpp"
#include "io/operations/of_file.hpp"
#include "io/suspensions/at_once.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

// The task of a connection that was accepted, or that was parked and is woken.
template <class Stream>
task<> converse(admission_ticket ticket, Stream over, connection_past was,
                std::unique_ptr<h2::conversation> begun);

template <class Stream>
struct parked_over final : parked {
  parked_over(admission_ticket&& admitted, Stream&& over, const connection_past& was,
              std::int64_t now_ns, std::unique_ptr<h2::conversation>&& begun) noexcept
      : parked(*admitted.of(), was, now_ns),
        ticket(std::move(admitted)),
        stream(std::move(over)),
        talk(std::move(begun)) {
    says_end = talk != nullptr;
  }
  void revive() override {
    if (now().count() - since_ns > soon_ns) past.pace = 0;
    past.was_parked = true;
    static_cast<void>(spawn(converse(std::move(ticket), std::move(stream), past, std::move(talk))));
  }
  admission_ticket ticket;
  Stream stream;
  std::unique_ptr<h2::conversation> talk;  // null for HTTP/1.1
};

template <class Stream>
class connection_over final : public connection {
 public:
  connection_over(admission_ticket&& ticket, Stream&& over, const connection_past& was,
                  std::unique_ptr<h2::conversation>&& begun) noexcept
      : connection(ticket.of(), ticket.counted(), was),
        ticket_(std::move(ticket)),
        stream_(std::move(over)),
        h2_(std::move(begun)) {
    if (h2_ != nullptr) note_h2();
    is_new_ = !is_secure && !past_.answered_one && h2_ == nullptr && h2::is_on(server_->options);
  }
  // The account ends before the ticket, which leaves the client.
  ~connection_over() override { stop_counting(); }

  // Runs until the connection ends or parks. Throws the stream's exceptions. All steps of each
  // batch of requests are written out in this function, because a coroutine of its own
  // would cost a frame each time. No ?: within a co_await makes a temporary: GCC 12 would destroy
  // that twice.
  task<> run() {
    if constexpr (is_secure) {
      if (!past_.was_parked) {
        if (!stream_.try_turn()) {
          wait_for_handshake(phase::in_line);
          const bool has_turn = co_await stream_.wait_for_turn(requested_.idle_token());
          if (!has_turn) co_return;
        }
        wait_for_handshake(phase::handshake);
        const bool is_done = co_await stream_.begin(server_->options.handshake_time,
                                                    server_->lingers, requested_.idle_token());
        clock_.end_wait();
        if (!is_done) co_return;
        if (stream_.alpn() == "h2" && h2::is_on(server_->options)) begin_secure_h2();
      }
    }
    for (;;) {
      if (is_new_) [[unlikely]]
        look_for_preface();
      if (h2_ != nullptr) [[unlikely]] {
        co_await run_h2();
        co_return;
      }
      const next then = is_new_ && !input_.empty() ? next::read : advance();
      if (then == next::serve) {
        const bool goes_on = co_await serve();
        if (goes_on) continue;
      }
      std::string_view left = out_.view();
      TROUPE_INVARIANT(left.empty() || !health_.is_cut_off(), "wire_health.H1");
      if constexpr (std::derived_from<Stream, troupe::stream>) {
        if (!left.empty() && !requested_.ends_writing())
          left.remove_prefix(io::at_once::write(stream_, left));
      }
      while (!left.empty()) {
        answered_ns_ = 0;
        clock_.begin_wait(phase::busy, server_->options.write_time, now().count());
        const std::size_t sent = co_await stream_.write(left).stop(requested_.busy_token());
        left.remove_prefix(sent);
      }
      out_.clear();
      if (then == next::write) continue;
      if (then != next::read) break;

      const bool is_idle = input_.empty(), something_came = std::exchange(past_.was_parked, false);
      if (is_slow() && !something_came && park(now().count())) co_return;
      wait_for_head(now_after_answers());
      const bool is_one_of_many = server_->count() >= sharing_from();
      const bool shares = !is_secure && is_idle && is_one_of_many;
      if (shares) {
        out_.rest();
        input_.release();
      }
      count_buffers();
      rest_memory(is_one_of_many || is_slow());
      std::stop_token token = is_idle ? requested_.idle_token() : requested_.busy_token();
      bool is_over = false;
      std::size_t bytes = 0;
      try {
        if constexpr (!is_secure) {
          if (shares) {
            io_buffer came = co_await stream_.read_some().stop(std::move(token));
            bytes = came.size();
            input_.adopt(std::move(came));
          }
        }
        if (!shares) {
          const std::span<char> room = input_.room(least_room);
          bytes = co_await stream_.read(room).stop(std::move(token));
          input_.came(bytes);
        }
      } catch (const cancelled&) {
        is_over = true;
      }
      if (is_over && requested_.why() == ending::parking) {
        if (park(clock_.idle_since_ns())) co_return;
        if (server_->unpark(*this)) continue;
      }
      if (is_over) bytes = co_await finish_ended_read(is_idle);
      if (bytes == 0) {
        if (!is_over && is_new_) is_new_ = false, static_cast<void>(advance());
        if (!is_over) peer_ended();
        co_await flush_all();
        break;
      }
      if (is_idle && is_slow()) ++past_.pace;
      clock_.end_wait();
    }
    co_await end_stream();
  }

  // TLS announces the end of the stream, because nothing else may mark the end of a body. A
  // connection that ends in the middle of an answer must not announce it.
  task<> end_stream() {
    // order: relaxed  our own thread writes it
    if (resets_.load(std::memory_order_relaxed)) co_return;
    if (is_secure && (progress_.answer_is_partly_sent() || health_.is_broken())) co_return;
    if (closing_.lingers() || !input_.empty()) {
      co_await linger(after_answer);
    } else if (is_secure) {
      co_await end_writing();
    }
  }

  // Answers a connection that is one too many.
  task<> turn_away() {
    if constexpr (is_secure) co_return;  // a handshake would cost more than the peer is worth now
    refuse_for_now();
    co_await flush_all();
    // The connection keeps its ticket while it lingers. Otherwise the connections of one address,
    // one after the other, could take all the places that lingering has.
    const rejection_linger said(server_->lingers);
    if (said.may_linger()) co_await linger(turned_away);
  }

  bool has_address() const noexcept override {
    if (const proxy_header* said = ticket_.client())
      return said->from == proxy_header::origin::address;
    return requires { stream_.peer(); };
  }
  bool secure() const noexcept override { return is_secure; }
  bool is_lost() const noexcept override { return health_.is_broken(); }
  endpoint peer() override {
    if (const proxy_header* said = ticket_.client()) {
      if (has_address()) return said->client;
    } else if constexpr (requires { stream_.peer(); }) {
      try {
        return stream_.peer();
      } catch (const io_error&) {
        // The peer has reset the connection: no peer is left to answer. When the handler ends by
        // this exception, that is not a failure of the program.
        health_.break_off();
        tell_gone();
        throw;
      }
    }
    throw usage_error(
        "troupe: http::request::peer: the client came by a Unix socket, whose peers have no "
        "address");
  }

  std::optional<tls_certificate> client_certificate() override {
    if constexpr (is_secure) {
      return stream_.peer_certificate();
    } else {
      return std::nullopt;
    }
  }

  task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) override {
    const bool upgraded = clock_.phase_now() == phase::upgraded;
    std::stop_token token = upgraded ? requested_.idle_token() : requested_.busy_token();
    // A function that receives learns of the server's stop by that.
    if (call_ != nullptr) call_->leave_server();
    std::size_t bytes = 0;
    try {
      bytes = co_await stream_.read(to).timeout(at_most).stop(std::move(token));
    } catch (const timed_out&) {  // the peer is silent, no more
      throw;
    } catch (const cancelled&) {
      // At a stop the connection still serves the last words of the conversation.
      if (!upgraded || requested_.why() != ending::draining) note_break();
      throw;
    } catch (...) {
      note_break();
      throw;
    }
    if (bytes == 0) health_.break_off();
    co_return bytes;
  }
  slowest_pace message_pace() const noexcept override {
    return {server_->options.body_rate, server_->options.body_grace};
  }
  // Sends in pieces, so that the time limit starts again whenever the peer has taken some bytes.
  task<> send(std::string_view bytes) override {
    check_whole();
    for (bool in_part = false; !bytes.empty(); in_part = true) {
      TROUPE_INVARIANT(!health_.is_cut_off(), "wire_health.H1");
      clock_.begin_wait(phase::busy, server_->options.write_time, now().count());
      std::size_t sent = 0;
      try {
        sent = co_await stream_.write(bytes).stop(requested_.busy_token());
      } catch (...) {
        clock_.end_wait();  // a write that was cancelled cannot be late
        note_break(in_part || is_secure);
        throw;
      }
      bytes.remove_prefix(sent);
    }
    clock_.end_wait();
  }
  // Sends in pieces, as send() does.
  task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                std::uint64_t bytes) override {
    std::uint64_t sent = 0;
    while (sent < bytes) {
      const auto piece =
          static_cast<std::size_t>(std::min<std::uint64_t>(bytes - sent, file_bytes_at_once));
      std::size_t went = 0;
      if constexpr (requires { stream_.send_file_some(from, offset, piece); }) {
        clock_.begin_wait(clock_.phase_now(), server_->options.write_time, now().count());
        try {
          went = co_await stream_.send_file_some(from, offset + sent, piece)
                     .stop(requested_.busy_token());
        } catch (const io_error& e) {
          // An error of the file is the handler's, as in the other branch, where the file is read
          // here.
          if (!io::is_of_file(e)) note_break();
          throw;
        } catch (...) {
          note_break();
          throw;
        }
      } else {
        troupe::file source = from.share();
        const std::span<char> room(out_.grow(piece), piece);
        went = co_await source.read_at(offset + sent, room);
        out_.shrink(piece - went);
        co_await send(out_.view());
        out_.clear();
      }
      if (went == 0) break;
      sent += went;
    }
    clock_.end_wait();
    co_return sent;
  }
  task<> send_owned(std::string bytes) override {
    const queued waiting(*this, bytes.capacity());
    const send_order::turn mine(order_);
    if (!mine.has_come()) co_await mine.comes();
    check_whole();
    bool in_part = is_secure;
    for (std::string_view left = bytes; !left.empty(); in_part = true) {
      std::size_t sent = 0;
      try {
        sent = co_await stream_.write(left)
                   .timeout(server_->options.write_time)
                   .stop(requested_.busy_token());
      } catch (...) {
        note_break(in_part);
        throw;
      }
      left.remove_prefix(sent);
    }
  }

 private:
  stream& wire() noexcept override { return wire_of(stream_); }
  static stream& wire_of(Stream& over) noexcept {
    if constexpr (is_secure) {
      return over.wire();
    } else {
      return over;
    }
  }

  // True: the connection is parked. `this` no longer has its stream, and another thread may already
  // serve that.
  bool park(std::int64_t since_ns) {
    if (!is_between() || closing_.is_near()) return false;
    TROUPE_INVARIANT(!is_watched(), "gone_watch.W2");
    if constexpr (is_secure) {
      if (!stream_.rest()) return false;
    }
    auto at_rest = std::make_unique<parked_over<Stream>>(std::move(ticket_), std::move(stream_),
                                                         past_, since_ns, std::move(h2_));
    stop_counting();
    if (server_->park(*this, *at_rest, wire_of(at_rest->stream))) {
      static_cast<void>(at_rest.release());
      return true;
    }
    ticket_ = std::move(at_rest->ticket);
    stream_ = std::move(at_rest->stream);
    h2_ = std::move(at_rest->talk);
    start_counting();
    return false;
  }

  // A connection in its handshake is treated like one whose peer has sent nothing yet: the server
  // may end it when the server stops, or to make room for another connection.
  void wait_for_handshake(phase at) noexcept {
    // The handshake has a timeout of its own, which counts as such; the sweep would only end it.
    clock_.begin_idle(at, std::chrono::nanoseconds::max(), now().count());
  }

  // ---- HTTP/2 ----

  // The first bytes show whether the client speaks HTTP/2 without TLS.
  void look_for_preface() {
    const std::string_view came = input_.view();
    if (came.empty() || h2::preface.starts_with(came)) {
      if (came.size() < h2::preface.size()) return;
    } else if (!came.starts_with(h2::preface)) {
      is_new_ = false;
      return;
    }
    begin_h2();
  }
  void begin_h2() {
    is_new_ = false;
    h2_ = std::make_unique<h2::conversation>(*server_);
    server_->speaks_h2(*this);
  }
  void begin_secure_h2() {
    begin_h2();
    if constexpr (is_secure) {
      if (!h2::is_allowed_cipher(stream_.cipher())) h2_->refuse_cipher();
    }
  }
  task<> run_h2() {
    for (;;) {
      std::string begun(input_.view());
      input_.release();
      const bool is_to_park = co_await h2_->run(*this, std::move(begun));
      if (!is_to_park) break;
      if (park(now().count())) co_return;
      // Something has arrived, or the connection is to end.
      past_.was_parked = true;
      server_->unpark(*this);
    }
    co_await end_stream();
  }
  task<std::size_t> read_wire(std::span<char> to, bool patient) override {
    std::stop_token token = patient ? requested_.busy_token() : requested_.idle_token();
    co_return co_await stream_.read(to).stop(std::move(token));
  }
  task<std::size_t> write_wire(std::string_view bytes) override {
    co_return co_await stream_.write(bytes).stop(requested_.busy_token());
  }
  std::size_t write_wire_at_once(std::string_view bytes) noexcept override {
    if constexpr (std::derived_from<Stream, troupe::stream>) {
      return io::at_once::write(stream_, bytes);
    } else {
      return 0;
    }
  }

  // Called in a catch block, with the exception of an operation of the stream. When a handler
  // cancels one of its own branches, that breaks nothing, unless a part was already sent: the peer
  // would take the next bytes for the rest of that part.
  void note_break(bool in_part = false) noexcept {
    try {
      throw;
    } catch (const cancelled&) {
      const ending why = requested_.why();
      if (why != ending::none && why != ending::parking) health_.break_off();
      if (in_part) {
        health_.cut_off();
        closing_.close();
      }
    } catch (...) {
      health_.break_off();
    }
    if (health_.is_broken()) tell_gone();
  }
  void check_whole() {
    if (!health_.is_cut_off()) return;
    health_.break_off();
    throw io_error("send", "a connection on which something was given up in the middle", EPIPE);
  }

  task<> flush_all() {
    if (out_.empty()) co_return;
    co_await send(out_.view());
    out_.clear();
  }

  // After a read that was ended: prepares an answer, or takes the bytes that came nevertheless.
  task<std::size_t> finish_ended_read(bool is_idle) {
    const ending why = requested_.why();
    if (!is_idle && (why == ending::late || why == ending::over_budget)) {
      server_->revive(*this);
      refuse(why == ending::late ? fault::too_slow : fault::over_budget);
    }
    // A head that comes slowly makes room now: its connection does not linger.
    if (!is_idle && why == ending::shed) input_.release();
    if (!is_idle || (why != ending::draining && why != ending::shed)) co_return 0;
    // A request whose bytes are already here counts as accepted. It is the last one.
    closing_.close_after_next();
    // The last answer may still be on its way.
    if (why == ending::draining && past_.answered_one) closing_.linger();
    const std::chrono::nanoseconds span =
        past_.answered_one || why == ending::shed ? last_look : first_look;
    std::size_t bytes = 0;
    try {
      bytes = co_await stream_.read(input_.room(least_room)).timeout(span);
    } catch (const timed_out&) {
    }
    input_.came(bytes);
    co_return bytes;
  }

  // How long a connection that was answered reads on.
  struct linger_limits {
    std::chrono::nanoseconds time;
    std::uint64_t bytes;
  };
  // Reads on for a while before it closes. Closing at once, while the peer is still sending, would
  // reset the connection, and the peer might never see the answer. A peer that is silent, or sends
  // more slowly than a body may come, is not waited for; nor is any while others need the room.
  task<> linger(linger_limits most) {
    co_await end_writing();
    input_.release();
    out_.rest();
    const std::span<char> room = input_.room(linger_room);
    count_buffers();
    const std::chrono::nanoseconds begun = now();
    clock_.begin_idle(phase::lingering, std::chrono::nanoseconds::max(), begun.count());
    paced_arrival came;
    const slowest_pace pace = message_pace();
    while (came.bytes() < most.bytes) {
      const std::chrono::nanoseconds before = now(), left = begun + most.time - before;
      const std::chrono::nanoseconds span = std::min({left, linger_silence, came.patience(pace)});
      std::size_t bytes = 0;
      try {
        bytes = co_await stream_.read(room).timeout(span).stop(requested_.busy_token());
      } catch (const error&) {
      }
      if (bytes == 0) break;
      came.waited(now() - before);
      came.came(bytes);
    }
    clock_.end_wait();
  }
  task<> end_writing() {
    try {
      if constexpr (requires { stream_.shutdown_write(); }) {
        stream_.shutdown_write();
      } else {
        co_await stream_.shutdown().timeout(linger_silence);
      }
    } catch (const error&) {  // the connection no longer exists
    }
    co_return;
  }

  static constexpr std::size_t least_room = 1024, file_bytes_at_once = 256 * 1024;
  static constexpr std::chrono::milliseconds last_look{1}, first_look{100};
  static constexpr std::chrono::nanoseconds linger_silence = std::chrono::seconds(1);
  static constexpr std::size_t linger_room = 16 * 1024;
  static constexpr linger_limits after_answer{std::chrono::seconds(60), 256 * 1024 * 1024},
      turned_away{std::chrono::seconds(1), 1024 * 1024};
  static constexpr bool is_secure = std::same_as<Stream, secret_stream>;
  admission_ticket ticket_;
  Stream stream_;
  send_order order_;
  std::unique_ptr<h2::conversation> h2_;  // null for HTTP/1.1
  bool is_new_ = false;  // the first bytes have not shown yet which protocol the client speaks
};

}  // namespace troupe::http
