// websocket: messages both ways (RFC 6455), compressed if both ends want it (RFC 7692).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/transport.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// The extension permessage-deflate: what one end wants, or what both have agreed on
// (websocket::deflate()). Each direction has a window of its own, of 2^bits bytes, and keeps it
// from message to message (context takeover) unless an end forbids that.
//
// Memory of a connection that has agreed on it, taken when the first message needs it: to compress
// 2^(window bits + 2) + 2^(memory_level + 9) bytes (256 KiB by default), to inflate 2^(window bits)
// and some 7 KiB (39 KiB by default). A direction without context takeover holds it only while a
// message is compressed or inflated, so an idle connection holds none. Compressing and inflating
// run on the worker: some 20 ms for each MiB of text.
//
// Example:
//     #include <troupe/http/websocket.hpp>
//     troupe::http::websocket_deflate frugal;
//     frugal.server_no_context_takeover = frugal.client_no_context_takeover = true;
//     troupe::http::websocket_options options;
//     options.deflate = frugal;
struct websocket_deflate {
  // The server's, or the client's, messages are compressed each on its own. Default false: they
  // become smaller with those before them.
  bool server_no_context_takeover = false, client_no_context_takeover = false;
  // The largest windows, from 9 to 15 (zlib cannot compress with 8). Default 15. A server can limit
  // the client's only if the client has said that it can be limited; ours does. An offer that wants
  // a server's window of 8 is declined, and a client that is told to use a window of 8 sends its
  // messages as they are.
  int server_max_window_bits = 15, client_max_window_bits = 15;
  // Of our own compressor: how much time it takes (1 to 9, default 6), and how much memory (1 to 9,
  // default 8).
  int level = 6, memory_level = 8;
  // Shorter messages are sent as they are. Default 64 bytes.
  std::size_t least_bytes = 64;
};

// Example:
//     troupe::http::websocket_options options;
//     options.message_bytes = 4096;
//     options.subprotocols = {"chat.v2", "chat.v1"};
//
// An unfinished message comes at the pace of a body at least: server_options::body_rate and
// body_grace, or client_options'. One that is slower ends the connection (1008). Between messages a
// peer may be silent for as long as it answers pings.
struct websocket_options {
  // Not an aggregate: GCC 12 destroys what a temporary one holds twice when it lies in a co_await
  // expression.
  websocket_options() {}

  // Bytes of a message, however many fragments it has, and when it has been inflated. Default 1
  // MiB; more ends the connection (1009).
  std::size_t message_bytes = 1024 * 1024;
  // A peer that has sent nothing for so long is asked whether it is there (ping); one that has not
  // answered after as long again is gone. Seen to while a receive() is awaited, however short each
  // of them is. Default 30 s.
  std::chrono::nanoseconds ping_after = std::chrono::seconds(30);

  // What the server speaks, or the client offers, the preferred one first. The server chooses the
  // first of its own that the client offers: websocket::subprotocol(). Default: none.
  std::vector<std::string> subprotocols;
  // Without a common one the server answers 400, and the client refuses the answer (bad_handshake).
  // Default false: the connection begins without one.
  bool require_subprotocol = false;
  // The server accepts, or the client offers, permessage-deflate. Default: it does not, for it
  // costs memory and time of each connection (see websocket_deflate), and compressing a secret
  // beside text that an attacker chooses lets him guess it by the lengths.
  std::optional<websocket_deflate> deflate;
};

// What was agreed on in the handshake. The library's own.
struct websocket_terms {
  websocket_terms() {}
  bool is_client = false;
  std::string subprotocol;
  std::optional<websocket_deflate> deflate;
};

struct websocket_message {
  bool is_text = true;    // UTF-8, which was checked; else binary
  std::string_view data;  // valid until the next receive()
};

// The connection: in the function that response::websocket() was given, or a client's
// (client::websocket()). One receive() at a time, a second one is a usage_error; any number of
// sends: branches of when_all within the function may do both. Messages are sent whole. It lives
// until each of its operations has ended. A client's that is destroyed ends the connection, without
// a close().
//
// Example (declarations):
//     troupe::task<> echo(troupe::http::websocket& peer) {
//       for (;;) {
//         const auto said = co_await peer.receive();
//         if (!said) co_return;
//         co_await peer.send(std::string(said->data));
//       }
//     }
class websocket {
 public:
  websocket(transport& over, std::string begun, const websocket_options& options,
            websocket_terms terms = {});
  websocket(const websocket&) = delete;
  virtual ~websocket();

  // The next message; nothing when the connection is closed: by the peer, for a breach of the
  // protocol, or since the server stops. See close_code(). Pings are answered while it is awaited.
  // One that is given up (when_any) loses nothing: the next one goes on where it was. Throws
  // io_error.
  task<std::optional<websocket_message>> receive();

  // Goes on when the system has taken it. Throw io_error (broken_pipe after a close; it is no
  // failure of the function when that was not its own), timed_out when the peer takes nothing, and
  // usage_error for a text that is no UTF-8. One that is given up when a part was sent was the
  // last: what is sent behind it throws io_error, and the connection ends without a close.
  task<> send(std::string text);
  task<> send_binary(std::string bytes);
  // Nothing more is sent. The peer is to answer: receive() until it gives nothing, or return.
  // Throws usage_error for a code that may not be sent, or a reason that is longer than 123 bytes
  // or no UTF-8.
  task<> close(int code = 1000, std::string reason = "");

  // With which it was closed: the peer's, or the one that it was closed with here. 1005: without
  // one; 1006: without a close. 0 while it is open.
  int close_code() const noexcept { return close_code_; }
  const std::string& close_reason() const noexcept { return close_reason_; }
  // What both ends have agreed on. The subprotocol is "" when there is none, and deflate() nothing
  // when messages are not compressed.
  const std::string& subprotocol() const noexcept { return terms_.subprotocol; }
  const std::optional<websocket_deflate>& deflate() const noexcept { return terms_.deflate; }

 private:
  friend struct websocket_end;
  struct parts;
  struct frame {
    bool last = false;
    int code = 0;
    std::uint64_t bytes = 0;
    std::uint32_t mask = 0;
  };
  task<bool> more();  // bytes; false when none come any more
  std::chrono::nanoseconds patience() const noexcept;
  void begin_next() noexcept;
  task<bool> need(std::size_t bytes);
  task<bool> read_frame();
  int breach_of(unsigned first, unsigned second) const noexcept;
  task<bool> read_payload(std::string& to);
  int inflate(std::string_view piece);
  int finish_message();
  task<bool> take_control();
  task<> send_answer();
  task<> send_frame(int code, std::string payload);
  task<> send_in_order(int code, std::string payload);
  std::string frame_of(int first, std::string_view payload) const;
  task<> fail(int code);
  task<> say_failure();
  void closed(int code, std::string reason);
  void ends() noexcept;

  transport& over_;
  const websocket_options options_;
  const websocket_terms terms_;
  std::unique_ptr<parts> parts_;  // where messages are compressed
  std::string in_;                // what has come and was not looked at, from `at_` on
  std::size_t at_ = 0;
  // Where a receive() that was given up has been.
  frame frame_;
  std::uint64_t frame_done_ = 0;  // bytes of its payload
  bool in_frame_ = false;
  std::string message_, control_;
  std::optional<std::string> answer_;  // to the control frame, which is due
  bool in_message_ = false, message_is_text_ = false;
  bool message_is_deflated_ = false;
  std::uint64_t deflated_bytes_ = 0;  // of its frames
  bool is_whole_ = false;             // the message is there, and was not given yet
  // when something came last, or was waited for first, or a ping went
  std::chrono::nanoseconds heard_{-1};
  std::uint64_t next_bytes_;                 // that have come of the next message, or control frame
  std::chrono::nanoseconds next_waited_{0};  // for more of them
  bool asked_ = false;                       // a ping is not answered yet
  bool ping_due_ = false;                    // nor sent: the receive() that was to was given up
  bool close_sent_ = false;
  bool is_received_ = false;
  // not by the function: by the peer's close, a breach of the protocol, or since the server stops
  bool is_ended_ = false;
  int unsaid_ = 0;  // the peer's breach, of which it is to be told
  int close_code_ = 0;
  std::string close_reason_;
};

}  // namespace troupe::http
