// writer: body_writer and event_writer, for answers whose length is not known at their beginning.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/http/transport.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// Sends a body in pieces, as chunks; to an HTTP/1.0 peer, as bytes until the connection ends.
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::task<> count(troupe::http::body_writer& to) {
//       for (int i = 0; i < 3; ++i) co_await to.write(std::to_string(i) + "\n");
//       to.trailer("Lines", "3");
//     }
//     troupe::http::response numbers() {
//       return troupe::http::response::stream("text/plain", count);
//     }
class body_writer {
 public:
  body_writer(transport& over, bool chunked, bool silent,
              std::optional<std::uint64_t> length = {}) noexcept
      : over_(over), chunked_(chunked), silent_(silent), left_(length) {}
  body_writer(const body_writer&) = delete;

  // Sends one piece at once; completes when the system has accepted it: a slow peer slows the
  // writer. Branches of when_all may write concurrently; no piece is mixed with another. Errors:
  // io_error if the peer has disconnected, timed_out if it accepts nothing, cancelled; usage_error
  // for a piece beyond the answer's length (response::stream with a length); none of its bytes are
  // sent.
  task<> write(std::string_view bytes);
  // Adds a field that is sent behind the body (a trailer), by HTTP/2, and by HTTP/1.1 if the answer
  // has no length; an HTTP/1.0 peer does not get it, and other peers may ignore it. Call it before
  // the function returns. Thread: the function's. Errors: usage_error for an invalid value, and for
  // a name that may_be_trailer() refuses.
  void trailer(std::string_view name, std::string_view value);
  // Whether that is the name of a field which may follow a body: not a field for the body's length,
  // its encoding, the message's destination, or its permitted use (RFC 9110, 6.5.1).
  static bool may_be_trailer(std::string_view name) noexcept;
  // Throws usage_error if fewer bytes than the answer's length were written. For the library's own
  // use, like the next functions.
  void check_length() const;
  // Whether bytes are missing.
  bool is_short() const noexcept { return left_.value_or(0) != 0; }
  // Sends the end.
  task<> finish();
  std::string& trailer_lines() noexcept { return trailer_; }

 private:
  transport& over_;
  std::string trailer_;  // lines "Name: value\r\n"
  bool chunked_, silent_;
  std::optional<std::uint64_t> left_;  // of the length that the answer announces
};

// One server-sent event.
struct event_message {
  event_message() = default;
  explicit event_message(std::string text) : data(std::move(text)) {}
  std::string data;
  std::string event;  // its type; empty: "message"
  std::string id;     // the id that a client sends back as Last-Event-ID when it reconnects
  int retry_ms = 0;   // milliseconds before a client reconnects; 0: the client decides
};

// Sends server-sent events (text/event-stream).
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::task<> tick(troupe::http::event_writer& to) {
//       for (int i = 0; i < 3; ++i) {
//         co_await to.send(std::to_string(i));
//         co_await troupe::sleep_for(std::chrono::seconds(1));
//       }
//     }
//     troupe::http::response ticks() { return troupe::http::response::events(tick); }
class event_writer {
 public:
  explicit event_writer(body_writer& body) noexcept : body_(body) {}
  event_writer(const event_writer&) = delete;

  // Sends an event. Throws usage_error if its type or id contains a line end; and as
  // body_writer::write.
  task<> send(event_message event);
  // Sends an event that has only data.
  task<> send(std::string_view data) { return send(event_message(std::string(data))); }
  // Sends a line that clients ignore. It keeps connections through proxies open.
  task<> comment(std::string text);

 private:
  body_writer& body_;
};

}  // namespace troupe::http
