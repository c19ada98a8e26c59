// body_writer and event_writer: answers whose length is not known when they begin.
#pragma once

#include <string>
#include <string_view>

#include "troupe/http/transport.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// Sends a body in pieces, as chunks; to a peer of HTTP/1.0 until the connection ends.
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::task<> count(troupe::http::body_writer& to) {
//       for (int i = 0; i < 3; ++i) co_await to.write(std::to_string(i) + "\n");
//     }
//     troupe::http::response numbers() { return troupe::http::response::stream("text/plain",
//     count); }
class body_writer {
 public:
  body_writer(transport& over, bool chunked, bool silent) noexcept
      : over_(over), chunked_(chunked), silent_(silent) {}
  body_writer(const body_writer&) = delete;

  // Sent at once; goes on when the system has taken it, so that a slow peer slows the writer.
  // Branches of when_all may write side by side: each piece goes whole. Throws io_error when the
  // peer has gone, timed_out when it takes nothing, cancelled.
  task<> write(std::string_view bytes);
  // The library's own: the end.
  task<> finish();

 private:
  transport& over_;
  bool chunked_, silent_;
};

// One event that a server sends.
struct event_message {
  event_message() = default;
  explicit event_message(std::string text) : data(std::move(text)) {}
  std::string data;
  std::string event;  // its type; empty: "message"
  std::string id;     // what the client says it has seen last, when it comes again (Last-Event-ID)
  int retry_ms = 0;   // after which the client is to come again; 0: as it likes
};

// Server-sent events (text/event-stream).
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
  explicit event_writer(body_writer& to) noexcept : to_(to) {}
  event_writer(const event_writer&) = delete;

  // Throws usage_error for a type or an id with a line end in it; and as body_writer::write.
  task<> send(event_message one);
  // An event that has nothing but its data.
  task<> send(std::string_view data) { return send(event_message(std::string(data))); }
  // A line that the client ignores: keeps connections open through proxies.
  task<> comment(std::string text);

 private:
  body_writer& to_;
};

}  // namespace troupe::http
