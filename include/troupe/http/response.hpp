// response: the answer of a handler.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/base/unique_function.hpp"
#include "troupe/http/values/borrowed_text.hpp"
#include "troupe/http/values/content_type.hpp"
#include "troupe/http/writer.hpp"
#include "troupe/io/file.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

namespace h2 {
class exchange;
}

class cookie;
struct compress;
class websocket;
struct websocket_options;

// The parts of responses that a task writes: a body, events, a WebSocket.
using stream_function = unique_function<task<>(body_writer&)>;
using event_function = unique_function<task<>(event_writer&)>;
using websocket_function = unique_function<task<>(websocket&)>;

// Complete lines of a head, in small blocks that the library reuses. For the library's own use.
using field_text = std::basic_string<char, std::char_traits<char>, memory::block_allocator<char>>;

// A part of an open file. For the library's own use.
struct file_part {
  troupe::file from;
  std::uint64_t offset = 0, bytes = 0;
};

// An answer, as a value. Cost: no allocation for a literal or a view as the body, nor for a short
// field.
//
// Example:
//     auto answer =
//         troupe::http::response::json("{\"id\":7}").status(201).field("Location", "/things/7");
//     std::cout << answer.status() << '\n';
class response {
 public:
  // 200 without a body. If the status is an error (400 and above) and there is neither a body nor a
  // type, the server makes an error_page (values/error_page.hpp). For an error without a body use
  // response::text("").status(404).
  response() noexcept {}
  explicit response(int status) noexcept : status_(status) {}
  response(response&&) noexcept = default;
  response& operator=(response&&) noexcept = default;

  // A literal is not copied; an array that is not constant is copied, up to its zero byte.
  template <std::size_t N>
  static response text(const char (&body)[N]) noexcept {
    return view(std::string_view(body, N - 1), "text/plain; charset=utf-8");
  }
  template <std::size_t N>
  static response text(char (&body)[N]) {
    return text(std::string(body));
  }
  static response text(std::string body) noexcept {
    return owned(std::move(body), "text/plain; charset=utf-8");
  }
  template <std::size_t N>
  static response html(const char (&body)[N]) noexcept {
    return view(std::string_view(body, N - 1), "text/html; charset=utf-8");
  }
  template <std::size_t N>
  static response html(char (&body)[N]) {
    return html(std::string(body));
  }
  static response html(std::string body) noexcept {
    return owned(std::move(body), "text/html; charset=utf-8");
  }
  template <std::size_t N>
  static response json(const char (&body)[N]) noexcept {
    return view(std::string_view(body, N - 1), "application/json");
  }
  template <std::size_t N>
  static response json(char (&body)[N]) {
    return json(std::string(body));
  }
  static response json(std::string body) noexcept {
    return owned(std::move(body), "application/json");
  }
  // A body of any type.
  static response owned(std::string body, content_type type) noexcept {
    response answer;
    answer.body_ = std::move(body);
    answer.type_ = std::move(type);
    return answer;
  }
  // Lifetime: the body's text must live until the answer was sent.
  static response view(borrowed_text body, content_type type) noexcept {
    response answer;
    answer.view_ = body.view();
    answer.type_ = std::move(type);
    return answer;
  }
  // A client follows 303 with GET, and 307 and 308 with the same method. Throws usage_error as
  // field() does.
  static response redirect(std::string_view to, int status = 303);

  // An answer that a function sends in pieces. The function is called after the head was sent; it
  // must own its captures. An exception from it is a failure of the runtime and ends the
  // connection, so that the peer sees that the body is incomplete.
  static response stream(content_type type, stream_function how);
  // The same for a body of `bytes` bytes: the head gives the size (Content-Length), in the answer
  // to HEAD as well, for which the function is not called. The length is checked: a write beyond it
  // throws usage_error, and a function that returns too early fails with a usage_error; the peer
  // then sees that the body is incomplete. A body that compress() encodes is sent without a length.
  static response stream(content_type type, std::uint64_t bytes, stream_function how);
  static response events(event_function how);
  // If the request asks for a WebSocket: answers 101 and calls the function; the connection ends
  // when the function has returned. Other requests are answered 426 or 400. See websocket.hpp.
  // Throws option_error for options that no handshake can express.
  static response websocket(websocket_function talk);
  static response websocket(websocket_function talk, const websocket_options& options);
  // `bytes` bytes of an open file, from `offset` on, sent by sendfile if the stream supports it.
  // The file stays open until the bytes were sent. If the file has fewer bytes by then, the
  // connection ends. Throws usage_error if the file is not open.
  static response file(const troupe::file& from, std::uint64_t offset, std::uint64_t bytes,
                       content_type type);

  int status() const noexcept { return status_; }
  response& status(int now) & noexcept {
    status_ = now;
    return *this;
  }
  response&& status(int now) && noexcept {
    status_ = now;
    return std::move(*this);
  }
  // Adds a field. The server itself sets Content-Length, Transfer-Encoding, Connection and Date.
  // Throws usage_error for an invalid name, and for a value that contains a line end, which could
  // end the head.
  response& field(std::string_view name, std::string_view value) &;
  response&& field(std::string_view name, std::string_view value) && {
    return std::move(field(name, value));
  }
  // Adds a Set-Cookie. Throws usage_error as cookie::text() does (values/cookie.hpp).
  response& cookie(const http::cookie& set) &;
  response&& cookie(const http::cookie& set) && { return std::move(cookie(set)); }
  // The value of the first field of that name that was added; "" if there is none.
  std::string_view field(std::string_view name) const noexcept;
  bool has_field(std::string_view name) const noexcept { return field(name).data() != nullptr; }
  response&& type(content_type now) && noexcept {
    type_ = std::move(now);
    return std::move(*this);
  }
  // Closes the connection after this answer.
  response&& closing() && noexcept {
    closes_ = true;
    return std::move(*this);
  }
  std::string_view body() const noexcept {
    return view_.data() != nullptr ? view_ : std::string_view(body_);
  }

 private:
  friend class connection;
  friend class handling;
  friend class h2::exchange;
  friend struct compress;
  struct special;
  struct compression;
  struct end_special {
    void operator()(special* ended) const noexcept;
  };
  special& extra();

  int status_ = 200;
  bool closes_ = false;
  content_type type_;
  std::string_view view_;
  std::string body_;
  field_text fields_;
  std::unique_ptr<special, end_special> special_;
};

}  // namespace troupe::http
