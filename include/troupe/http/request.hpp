// request: what a handler is given.
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "troupe/context/context.hpp"
#include "troupe/http/message.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// The connection that a request came by: where the rest of its body comes from, and who sends it.
// The library's own.
struct request_source {
  virtual task<std::string_view> next_piece() = 0;
  virtual endpoint peer() = 0;
  virtual std::stop_token client_gone() = 0;

 protected:
  ~request_source() = default;
};

// Its views are valid until the handler has ended; for a coroutine that is until it has returned
// its response.
//
// Example (declarations):
//     #include <troupe/http/response.hpp>
//     troupe::http::response greet(const troupe::http::request& asked) {
//       return troupe::http::response::text("hello, " + asked.query_value("name").value_or("you"));
//     }
//     troupe::task<troupe::http::response> count(troupe::http::request& asked) {
//       std::size_t bytes = 0;
//       for (;;) {
//         const std::string_view piece = co_await asked.read();
//         if (piece.empty()) break;
//         bytes += piece.size();
//       }
//       co_return troupe::http::response::text(std::to_string(bytes));
//     }
class request {
 public:
  request() = default;
  request(const request&) = delete;
  request& operator=(const request&) = delete;

  http::method method() const noexcept { return head_->method; }
  std::string_view method_name() const noexcept { return head_->method_name; }
  // As it came: "/a%20b?x=1".
  std::string_view target() const noexcept { return head_->target; }
  // Decoded: "/a b".
  std::string_view path() const noexcept { return path_; }
  // As it came: "x=1".
  std::string_view query() const noexcept { return head_->query; }
  // The first one of that name, decoded ('+' is a space); nothing when there is none.
  std::optional<std::string> query_value(std::string_view name) const;
  std::string_view host() const noexcept { return head_->host; }
  http::fields fields() const noexcept { return head_->fields; }
  // The first of that name; "" when there is none.
  std::string_view field(std::string_view name) const noexcept { return head_->fields[name]; }
  const message_head& head() const noexcept { return *head_; }

  // All of it, for a handler that is no coroutine; for one that is, what read_all() has read.
  std::string_view body() const noexcept { return body_; }
  // For a coroutine: the next piece of the body, valid until the next call; "" at its end. The
  // first call tells a peer that waits for it to go on (100 Continue). One at a time: a second one
  // is a usage_error. One that is given up (when_any) loses nothing. Throws refused when the body
  // is malformed, too large or too slow, and what a stream throws.
  task<std::string_view> read() { return source_->next_piece(); }
  // All of it; body() from then on. Throws as read() does.
  task<std::string_view> read_all();
  // Fields behind a chunked body that was read to its end.
  http::fields trailer() const noexcept { return trailer_; }

  // Memory for this request: what is allocated there goes, in one step, when its answer has been
  // sent, so that a connection that serves a million requests stays as it is. In a handler that is
  // no coroutine this_context() is the same. A response may refer to it (response::view), and so
  // may what the handler throws.
  context& memory() const noexcept { return *memory_; }

  // Requested when the server stops: for handlers that take long.
  std::stop_token stopping() const noexcept { return stopping_; }

  // The address and the port that the request came from: those of a proxy, if it came by one. In
  // the handler. Cost: a system call. Throws io_error when the client has gone, usage_error for a
  // server on a Unix socket.
  endpoint peer() const { return source_->peer(); }

  // Requested when the client has gone while its answer is being made or sent: for a coroutine that
  // takes long, and for what streams the answer (take the token along, for the request is no more
  // by then). It has gone when its connection was reset, when it has closed it, when a send to it
  // has failed; and, unless server_options::half_close_is_gone is false, when it has ended its
  // sending half, which cannot be told from a close; what the handler answers is sent all the same.
  // What it has sent and nobody has read yet, of the body or of a next request, hides none of that:
  // for a body that is not read yet the system is told to buffer up to 1 MiB. A close behind more
  // than the system buffers is seen when that is read. Not once a WebSocket has begun, which says
  // so itself. The stop is requested on any thread. Call it in the handler; one that is no
  // coroutine learns whether the client has gone by then. Cost: nothing for requests that do not
  // ask; else an allocation and one operation of I/O, which is ended with the request. Example
  // (declarations):
  //     #include <troupe/http/response.hpp>
  //     troupe::task<troupe::http::response> wait_long(const troupe::http::request& asked,
  //     troupe::event done) {
  //       co_await done.wait().stop(asked.client_gone());  // throws cancelled, and the connection
  //       ends co_return troupe::http::response::text("done");
  //     }
  std::stop_token client_gone() const { return source_->client_gone(); }

 private:
  friend class connection;
  const message_head* head_ = nullptr;
  std::string_view path_, body_;
  http::fields trailer_;
  std::string collected_;
  request_source* source_ = nullptr;
  std::stop_token stopping_;
  context* memory_ = nullptr;
};

// "a%20b" as "a b" behind `to`. False when it is malformed, or has a zero byte.
bool decode_percent(std::string_view text, std::string& to, bool plus_is_space = false);

}  // namespace troupe::http
