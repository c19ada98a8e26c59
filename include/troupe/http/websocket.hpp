// websocket: messages in both directions (RFC 6455), compressed if both ends ask for it (RFC 7692).
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/http/transport.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// The extension permessage-deflate: the terms that one end proposes, or those on which both ends
// agreed (websocket::deflate()). Each direction has a window of its own, of 2^bits bytes, which it
// keeps from message to message (context takeover) unless an end forbids this.
//
// Memory of a connection that has agreed on it, allocated when the first message needs it:
// 2^(window bits + 2) + 2^(memory_level + 9) bytes to compress (256 KiB by default), and 2^(window
// bits) bytes plus about 7 KiB to inflate (39 KiB by default). A direction without context takeover
// holds this memory only while it compresses or inflates a message: an idle connection holds none.
// Compression and inflation run on the worker: about 20 ms for each MiB of text.
//
// Example:
//     #include <troupe/http/websocket.hpp>
//     troupe::http::websocket_deflate frugal;
//     frugal.server_no_context_takeover = frugal.client_no_context_takeover = true;
//     troupe::http::websocket_options options;
//     options.deflate = frugal;
struct websocket_deflate {
  // True: each message of the server, or of the client, is compressed by itself. Default false:
  // earlier messages help to make later ones smaller.
  bool server_no_context_takeover = false, client_no_context_takeover = false;
  // Largest windows, from 9 to 15 bits (zlib cannot compress with 8). Default 15. A server can
  // limit the client's window only if the client has offered to accept this; this library's
  // client does. A server declines an offer that requires a server window of 8 bits. If the
  // server's answer limits the client's window to 8 bits, this library's client sends its messages
  // uncompressed.
  int server_max_window_bits = 15, client_max_window_bits = 15;
  // For this end's compressor: level of effort (1 to 9, default 6), and of memory (1 to 9, default
  // 8).
  int level = 6, memory_level = 8;
  // Messages shorter than this are sent uncompressed. Default 64 bytes.
  std::size_t least_bytes = 64;
};

// Options of one WebSocket, for a server or a client.
//
// Example:
//     troupe::http::websocket_options options;
//     options.message_bytes = 4096;
//     options.subprotocols = {"chat.v2", "chat.v1"};
//
// The minimum rate of a body (body_rate and body_grace of server_options, or of client_options)
// also applies to a message: one that arrives more slowly ends the connection (1008). Between
// messages a peer may be silent for any time, as long as it answers pings.
struct websocket_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  websocket_options() {}

  // Maximum bytes of a message, over all its fragments and after inflation. Default 1 MiB; more
  // ends the connection (1009).
  std::size_t message_bytes = 1024 * 1024;
  // A peer that has sent nothing for this time gets a ping; if it sends nothing for the same time
  // again, it counts as gone. Checked while a receive() is awaited, even if each call is short.
  // Default 30 s.
  time_span ping_after = std::chrono::seconds(30);

  // The subprotocols that the server supports or the client offers, the preferred one first. The
  // server chooses the first of its own that the client offers: websocket::subprotocol(). Default:
  // none.
  std::vector<std::string> subprotocols;
  // True: if there is no common subprotocol, the server answers 400, and the client refuses the
  // answer (bad_handshake). Default false: the connection then has no subprotocol.
  bool require_subprotocol = false;
  // The server accepts, or the client offers, permessage-deflate. Default: no, since it costs
  // memory and time for each connection (see websocket_deflate). Also, if a message contains a
  // secret next to text that an attacker chooses, the compressed length lets the attacker guess the
  // secret.
  std::optional<websocket_deflate> deflate;
};

// The terms on which both ends agreed in the handshake. For the library's own use.
struct websocket_terms {
  websocket_terms() {}
  bool is_client = false;
  std::string subprotocol;
  std::optional<websocket_deflate> deflate;
};

// One received message.
struct websocket_message {
  bool is_text = true;    // valid UTF-8; otherwise binary
  std::string_view data;  // valid until the next receive()
};

// One end of a WebSocket connection. A server's function gets it from response::websocket(), a
// client from client::websocket(). Limits: one receive() at a time, a second one is a usage_error;
// any number of sends. Branches of one when_all may therefore receive and send. Messages of
// concurrent sends are not interleaved. Lifetime: it must live until all its operations have ended.
// The destructor of a client's WebSocket ends the connection, without a close().
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

  // Waits for the next message. Returns nothing when the connection is closed: by the peer, because
  // of a breach of the protocol, or because the server stops; see close_code(). Answers pings
  // meanwhile. A receive() that is given up (when_any) loses no bytes: the next receive() continues
  // with them. Throws io_error; also client_error (too_much_kept) if the client has ended this
  // WebSocket because it kept too many bytes (client_options::buffer_bytes).
  task<std::optional<websocket_message>> receive();

  // Send a message; co_await returns when the system has accepted it. Errors: io_error (broken_pipe
  // after a close; a server's function that has not closed the connection itself may let this
  // exception escape: it is no failure), timed_out if the peer accepts nothing, usage_error for a
  // text that is not UTF-8. If a send is given up after a part of its message was sent, later sends
  // throw io_error, and the connection ends without a close.
  task<> send(std::string text);
  task<> send_binary(std::string bytes);
  // Sends a close; nothing can be sent after it. The peer must answer it: call receive() until it
  // returns nothing, or return from the function. Throws usage_error for a code that may not be
  // sent, and for a reason that is longer than 123 bytes or not UTF-8.
  task<> close(int code = 1000, std::string reason = "");

  // The code of the peer's close, or of this end's. 1005: a close without a code; 1006: the
  // connection ended without a close. 0 while the connection is open.
  int close_code() const noexcept { return close_code_; }
  const std::string& close_reason() const noexcept { return close_reason_; }
  // The terms on which both ends agreed. subprotocol() is "" if there is none; deflate() is empty
  // if messages are not compressed.
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
  // The states of one end: of the message that arrives, of the ping, and of the close.
  // Invariants
  //   F1  A frame begins only behind the end of the frame before it, and ends once.
  //   F2  A message becomes whole once, between its frames; no frame begins before it is taken.
  //   P1  A ping is sent only when it is due, and becomes due only when no ping is unanswered.
  //   E1  One close is sent, unless sending it fails.
  class arrival {
   public:
    bool is_in_frame() const noexcept { return frame_ != frame_stage::none; }
    bool is_in_frame_of_message() const noexcept { return frame_ == frame_stage::of_message; }
    bool is_in_message() const noexcept { return message_ != message_stage::none; }
    bool is_whole() const noexcept { return message_ == message_stage::whole; }
    void begin_frame(bool is_control) noexcept;
    void end_frame() noexcept;
    void finish_message() noexcept;
    void take_message() noexcept;

   private:
    enum class frame_stage : std::uint8_t { none, of_message, control };
    enum class message_stage : std::uint8_t { none, in_frames, whole };
    frame_stage frame_ = frame_stage::none;
    message_stage message_ = message_stage::none;
  };
  class ping_stage {
   public:
    // The ping was not sent yet; maybe because the receive() that should send it was given up.
    bool is_due() const noexcept { return stage_ == stage::due; }
    bool is_unanswered() const noexcept { return stage_ != stage::none; }
    void ask() noexcept;
    void note_sent() noexcept;
    void note_answer() noexcept { stage_ = stage::none; }  // any bytes of the peer

   private:
    enum class stage : std::uint8_t { none, due, sent };
    stage stage_ = stage::none;
  };
  class close_stage {
   public:
    bool is_sent() const noexcept { return stage_ == stage::sent || stage_ == stage::answered; }
    // True if the peer's close, a breach of the protocol or the server's stop has ended the
    // connection, and not the function.
    bool is_ended() const noexcept { return stage_ == stage::ended || stage_ == stage::answered; }
    void begin_to_send() noexcept;
    void fail_to_send() noexcept;
    void end() noexcept {
      if (stage_ == stage::open) stage_ = stage::ended;
    }

   private:
    enum class stage : std::uint8_t { open, sent, ended, answered };
    stage stage_ = stage::open;
  };
  task<bool> more();  // receives bytes; false at the end
  task<bool> is_left_alone();
  task<> take_rest();
  bool has_message() const noexcept;
  std::size_t kept_bytes() const noexcept;
  static void free_kept(websocket& ended) noexcept;
  void check_kept();
  std::chrono::nanoseconds patience() noexcept;
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

  transport& over_;
  const websocket_options options_;
  const websocket_terms terms_;
  std::unique_ptr<parts> parts_;  // state of the compression
  std::string input_;             // received bytes, unread from `at_` on
  std::size_t at_ = 0;
  // The state of a receive() that was given up, for the next one.
  frame frame_;
  std::uint64_t frame_done_ = 0;  // bytes of its payload so far
  std::string message_, control_;
  std::optional<std::string> answer_;  // to a control frame; still to be sent
  arrival arrival_;
  ping_stage ping_;
  close_stage close_;
  bool message_is_deflated_ = false;
  int message_code_ = 0;              // of its first frame: text or binary
  std::uint64_t deflated_bytes_ = 0;  // of the message's frames so far
  // when bytes last arrived, a wait for them first began, or a ping was sent
  std::chrono::nanoseconds heard_{-1};
  paced_arrival next_;  // the next message or control frame
  bool is_received_ = false;
  bool at_end_ = false;  // the peer has ended its half, and all its bytes were taken
  // empty until the peer ends its half; then set by the end of a receive(), and by the end of a
  // read ahead of one
  std::optional<event> unreceived_, untaken_;
  int unsaid_ = 0;  // the code of the peer's breach, which must still be sent to the peer
  int close_code_ = 0;
  std::string close_reason_;
};

}  // namespace troupe::http
