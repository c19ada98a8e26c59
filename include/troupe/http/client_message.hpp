// client_request and client_response: what is asked of a server, and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/http/message.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class exchange;

// Sends a body in pieces, as chunks.
class upload {
 public:
  explicit upload(exchange& over) noexcept : over_(over) {}
  upload(const upload&) = delete;
  // Goes on when the system has taken it, so that a slow peer slows the writer. One that is given
  // up (when_any) was the last: the request then ends with an io_error.
  task<> write(std::string_view bytes);

 private:
  exchange& over_;
};
using upload_function = std::move_only_function<task<>(upload&)>;

// Give it a name, and move it in: `web.send(std::move(asked))`.
//
// Example (declarations):
//     troupe::http::client_request put_thing(std::string text) {
//       troupe::http::client_request asked("PUT", "https://example.org/things/7");
//       asked.field("Authorization", "Bearer 123").body(std::move(text), "application/json");
//       return asked;
//     }
class client_request {
 public:
  // Methods have a case: "GET". Throws usage_error for what is no name of a method, and for
  // CONNECT.
  client_request(std::string method, std::string url);
  client_request(client_request&&) noexcept = default;
  client_request& operator=(client_request&&) noexcept = default;

  // One more field. Throws usage_error for a name that is none, for a value with a control byte in
  // it (a line end would let it write another request), and for those that are the client's own:
  // Host, Content-Length, Transfer-Encoding, Connection, Upgrade, TE, Trailer, Expect.
  client_request& field(std::string_view name, std::string_view value);
  // With its Content-Type, if that is not empty; in place of one that was there, as with range().
  // Throws usage_error as field() does.
  client_request& body(std::string bytes, std::string_view type);
  // Of a length that is not known: the function is called once the head is sent, and owns what it
  // captures. Such a request is sent once: never again after a stale connection or a redirect that
  // would want its body.
  client_request& body(upload_function how, std::string_view type);
  // A part: from that byte on, to that one (the last). A server that does not do this answers 200
  // with all of it.
  client_request& range(std::uint64_t first, std::optional<std::uint64_t> last = {});

  const std::string& method() const noexcept { return method_; }
  const std::string& url() const noexcept { return url_; }

 private:
  friend class client_access;
  void only_field(std::string_view name, std::string_view value);
  std::string method_, url_, fields_, body_;
  upload_function upload_;
  bool has_body_ = false, ranged_ = false;
};

struct content_range {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> of;  // how much there is
};

// Move-only. The head is there; the body is read in pieces as they come, or all at once. The limits
// that the request was sent with hold until its end. Read to its end the connection serves another
// request; else it is closed when this goes.
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
  std::string_view reason() const noexcept;
  http::fields fields() const noexcept;
  // The first of that name; "" when there is none.
  std::string_view field(std::string_view name) const noexcept { return fields()[name]; }
  // Where it came from, after redirects.
  const std::string& url() const noexcept;
  // Of the body, if the server has said it.
  std::optional<std::uint64_t> length() const noexcept;
  // Of a 206; nothing when it is malformed.
  std::optional<content_range> range() const noexcept;

  // The next piece, valid until the next call; "" at the end. What is not read yet stays at the
  // server. One at a time: a second one is a usage_error. One that is given up (when_any) loses
  // nothing: the next one goes on where it was. Throws client_error (truncated, bad_response,
  // too_slow), io_error, tls_error, timed_out, cancelled.
  task<std::string_view> read();
  // All that is left; more than client_options::body_bytes is a client_error, body_too_large.
  task<std::string> read_all();
  // Fields behind a chunked body that was read to its end.
  http::fields trailer() const noexcept;

 private:
  friend class client_access;
  explicit client_response(std::shared_ptr<exchange> of) noexcept : of_(std::move(of)) {}
  std::shared_ptr<exchange> of_;
};

}  // namespace troupe::http
