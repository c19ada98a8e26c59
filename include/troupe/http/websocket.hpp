// websocket: messages both ways (RFC 6455), the server's side.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/http/transport.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// Example:
//     troupe::http::websocket_options options;
//     options.message_bytes = 4096;
struct websocket_options {
  // Bytes of a message, however many fragments it has. Default 1 MiB; more ends the connection (1009).
  std::size_t message_bytes = 1024 * 1024;
  // A peer that has sent nothing for so long is asked whether it is there (ping); one that has not answered after as long
  // again is gone. Seen to while a receive() is awaited, however short each of them is. Default 30 s.
  std::chrono::nanoseconds ping_after = std::chrono::seconds(30);
};

struct websocket_message {
  bool is_text = true;    // UTF-8, which was checked; else binary
  std::string_view data;  // valid until the next receive()
};

// The connection, in the function that response::websocket() was given. One receive() at a time, a second one is a usage_error; any
// number of sends: branches of when_all within the function may do both. Messages are sent whole.
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
  websocket(transport& over, std::string begun, const websocket_options& options)
      : over_(over), options_(options), in_(std::move(begun)) {}
  websocket(const websocket&) = delete;

  // The next message; nothing when the connection is closed: by the peer, for a breach of the protocol, or since the server
  // stops. See close_code(). Pings are answered while it is awaited. One that is given up (when_any) loses nothing: the next one
  // goes on where it was. Throws io_error.
  task<std::optional<websocket_message>> receive();

  // Goes on when the system has taken it. Throw io_error (broken_pipe after a close; it is no failure of the function when that was
  // not its own), timed_out when the peer takes nothing,
  // and usage_error for a text that is no UTF-8. One that is given up when a part was sent was the last: what is sent behind it
  // throws io_error, and the connection ends without a close.
  task<> send(std::string text);
  task<> send_binary(std::string bytes);
  // Nothing more is sent. The peer is to answer: receive() until it gives nothing, or return. Throws usage_error for a code that
  // may not be sent, or a reason that is longer than 123 bytes or no UTF-8.
  task<> close(int code = 1000, std::string reason = "");

  // With which it was closed: the peer's, or the one that it was closed with here. 1005: without one; 1006: without a close.
  // 0 while it is open.
  int close_code() const noexcept { return close_code_; }
  const std::string& close_reason() const noexcept { return close_reason_; }

 private:
  friend struct websocket_end;
  struct frame {
    bool last = false;
    int code = 0;
    std::uint64_t bytes = 0;
    std::uint32_t mask = 0;
  };
  task<bool> more();  // bytes; false when none come any more
  task<bool> need(std::size_t bytes);
  task<bool> read_frame();
  task<bool> read_payload(std::string& to);
  task<bool> take_control();
  task<> send_answer();
  task<> send_frame(int code, std::string payload);
  task<> fail(int code);
  task<> say_failure();
  void closed(int code, std::string reason);
  void ends() noexcept;

  transport& over_;
  const websocket_options options_;
  std::string in_;  // what has come and was not looked at, from `at_` on
  std::size_t at_ = 0;
  // Where a receive() that was given up has been.
  frame frame_;
  std::uint64_t frame_done_ = 0;  // bytes of its payload
  bool in_frame_ = false;
  std::string message_, control_;
  std::optional<std::string> answer_;  // to the control frame, which is due
  bool in_message_ = false, message_is_text_ = false;
  bool is_whole_ = false;               // the message is there, and was not given yet
  std::chrono::nanoseconds heard_{-1};  // when something came last, or was waited for first, or a ping went
  bool asked_ = false;                  // a ping is not answered yet
  bool ping_due_ = false;               // nor sent: the receive() that was to was given up
  bool close_sent_ = false;
  bool is_received_ = false;
  bool is_ended_ = false;  // not by the function: by the peer's close, a breach of the protocol, or since the server stops
  int unsaid_ = 0;  // the peer's breach, of which it is to be told
  int close_code_ = 0;
  std::string close_reason_;
};

}  // namespace troupe::http
