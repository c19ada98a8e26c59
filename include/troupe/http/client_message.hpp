// client_message: client_request, which is sent to a server, and client_response, its answer.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/unique_function.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class exchange;

// Sends a request's body in pieces: as chunks, or by HTTP/2.
class upload {
 public:
  explicit upload(exchange& over) noexcept : over_(over) {}
  upload(const upload&) = delete;
  // Sends one piece; completes when the system has accepted it, by HTTP/2 when the server has given
  // a window for it: a slow peer slows the writer. If a write is given up (when_any), the request
  // ends with an io_error.
  task<> write(std::string_view bytes);
  // Adds a field that is sent behind the body (a trailer), which servers may ignore. Call it before
  // the function returns. Errors: usage_error for an invalid value, and for a name that
  // body_writer::may_be_trailer() refuses.
  void trailer(std::string_view name, std::string_view value);
  // For the library's own use.
  const std::string& trailer_lines() const noexcept { return trailer_; }

 private:
  exchange& over_;
  std::string trailer_;  // lines "Name: value\r\n"
};
using upload_function = unique_function<task<>(upload&)>;

// A request. Name it, and move it in: `web.send(std::move(asked))`.
//
// Example (declarations):
//     troupe::http::client_request put_thing(std::string text) {
//       troupe::http::client_request asked("PUT", "https://example.org/things/7");
//       asked.field("Authorization", "Bearer 123").body(std::move(text), "application/json");
//       return asked;
//     }
class client_request {
 public:
  // Method names are case-sensitive: "GET". Throws usage_error for an invalid method name, and for
  // CONNECT.
  client_request(std::string method, std::string url);
  client_request(client_request&&) noexcept = default;
  client_request& operator=(client_request&&) noexcept = default;

  // Adds a field. Throws usage_error for an invalid name, for a value with a control byte (a line
  // end could add another request), and for fields that the client itself sets: Host,
  // Content-Length, Transfer-Encoding, Connection, Upgrade, TE, Trailer, Expect.
  client_request& field(std::string_view name, std::string_view value);
  // Sets the body and, if `type` is not empty, the field Content-Type, which replaces an earlier
  // one. Throws usage_error as field() does, and for TRACE.
  client_request& body(std::string bytes, std::string_view type);
  // Sets a body of unknown length. The function is called after the head was sent, and must own its
  // captures. Such a request is sent once: never again after a stale connection, or for a redirect
  // that needs the body.
  client_request& body(upload_function how, std::string_view type);
  // Asks for a part: from byte `first` on, up to and including `last`; replaces an earlier range. A
  // server that does not support ranges answers 200 with the whole.
  client_request& range(std::uint64_t first, std::optional<std::uint64_t> last = {});

  // Sends the path and the query of the URL unchanged (url::parse_as_written). For a proxy, which
  // must not change them.
  client_request& as_written() noexcept {
    as_written_ = true;
    return *this;
  }

  const std::string& method() const noexcept { return method_; }
  const std::string& url() const noexcept { return url_; }

 private:
  friend class client_access;
  void only_field(std::string_view name, std::string_view value);
  std::string method_, url_, fields_, body_;
  upload_function upload_;
  bool has_body_ = false, ranged_ = false, as_written_ = false;
};

// The range of an answer with status 206, in bytes; `last` is the last byte of the range.
struct content_range {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> of;  // the size of the whole
};

// An answer. Move-only. Its head has arrived; read the body in pieces as they arrive, or all at
// once. The limits of the request apply until the end of the body. Lifetime: after the end of the
// body, the connection serves other requests; if the answer is destroyed before, its connection is
// closed, or its stream of HTTP/2 is reset. An answer by HTTP/2 that was not read to its end keeps
// the program alive.
//
// Example (declarations):
//     troupe::task<std::size_t> count_bytes(troupe::http::client_response answer) {
//       std::size_t bytes = 0;
//       for (;;) {
//         const std::string_view piece = co_await answer.read();
//         if (piece.empty()) co_return bytes;
//         bytes += piece.size();
//       }
//     }
class client_response {
 public:
  client_response(client_response&&) noexcept = default;
  client_response& operator=(client_response&&) noexcept = default;

  int status() const noexcept;
  bool ok() const noexcept { return status() >= 200 && status() < 300; }
  // "" by HTTP/2.
  std::string_view reason() const noexcept;
  http::fields fields() const noexcept;
  // The first field with that name; "" if there is none.
  std::string_view field(std::string_view name) const noexcept { return fields()[name]; }
  // The URL of the answer, after redirects.
  const std::string& url() const noexcept;
  // The length of the body, if the server has sent it, and if the body is not decoded.
  std::optional<std::uint64_t> length() const noexcept;
  // The range of a 206; empty if it is malformed.
  std::optional<content_range> range() const noexcept;

  // Waits for the next piece of the body. The piece is valid until the next call; "" at the end.
  // Flow control: unread data stays at the server. One call at a time: a second one is a
  // usage_error. A call that is given up (when_any) loses no bytes: the next call continues with
  // them. Errors: client_error (truncated, bad_response, too_slow), io_error, tls_error, timed_out,
  // cancelled.
  task<std::string_view> read();
  // Reads all remaining bytes. The bytes that an abandoned call has read come first at the next
  // call, and at the next read(). More than client_options::body_bytes is a client_error,
  // body_too_large.
  task<std::string> read_all();
  // The fields behind a body that was read to its end: behind a chunked one, or by HTTP/2.
  http::fields trailer() const noexcept;

 private:
  friend class client_access;
  explicit client_response(std::shared_ptr<exchange> asked) noexcept
      : exchange_(std::move(asked)) {}
  std::shared_ptr<exchange> exchange_;
};

}  // namespace troupe::http
