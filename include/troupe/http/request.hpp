// request: the argument of a handler.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "troupe/context/context.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/http/values/kept_share.hpp"
#include "troupe/http/values/value_text.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/certificate.hpp"

namespace troupe::http {

namespace h2 {
class exchange;
}

struct compress;

// The connection of a request: the source of the rest of its body, and the peer's address. For the
// library's own use.
struct request_source {
  virtual task<std::string_view> next_piece() = 0;
  virtual endpoint peer() = 0;
  virtual bool has_address() const noexcept = 0;
  virtual std::optional<endpoint> client() = 0;
  virtual bool secure() const noexcept = 0;
  virtual bool is_lost() const noexcept = 0;
  virtual std::stop_token client_gone() = 0;
  virtual std::optional<tls_certificate> client_certificate() = 0;
  // A reader of the body keeps more of it than before.
  virtual void count_kept() noexcept = 0;
  // Called when an encoder of this size begins to encode the streamed answer. Returns false if the
  // client's share has no space for it.
  virtual bool reserve_encoder(std::size_t bytes) noexcept = 0;

 protected:
  ~request_source() = default;
};

// The decoded parts of a path that match a pattern's parameters.
struct path_values {
  static constexpr std::size_t most = 8;
  std::array<std::string_view, most> value;
  std::size_t count = 0;
  const std::string* names = nullptr;  // `count` names
  // For a request that no route answers: the methods of its path, as in router::found.
  unsigned methods = 0;
};

// A request. Lifetime: its views are valid until the handler has ended; for a coroutine, until it
// has returned its response.
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
  // As received: "/a%20b?x=1".
  std::string_view target() const noexcept { return head_->target; }
  // Decoded: "/a b".
  std::string_view path() const noexcept { return path_; }
  // The decoded value of the parameter `name` of the route's pattern: path<int>("id") for
  // "/users/{id}". Errors: status_error 400 if the text does not fit the type, usage_error if the
  // pattern has no such parameter. A T of std::string_view is a view into the request.
  template <text_value T>
  T path(std::string_view name) const {
    return values::converted<T>(path_text(name), {"path parameter", name});
  }
  // As received: "x=1".
  std::string_view query() const noexcept { return head_->query; }
  // The first value with that name, decoded ('+' means a space), as a number, a bool, a
  // std::string, or a type that is made from a std::string_view. query<std::optional<T>>() is empty
  // if there is none; query<std::vector<T>>() has all values with that name. Errors: status_error
  // 400, which names the parameter, if there is none, if it does not fit the type, or if its
  // encoding is malformed. Cost: it reads the query up to the value.
  //
  // Example (declarations):
  //     #include <troupe/http/response.hpp>
  //     troupe::http::response find(const troupe::http::request& asked) {
  //       const int page = asked.query<int>("page", 1);
  //       const auto tags = asked.query<std::vector<std::string>>("tag");
  //       return troupe::http::response::text(asked.query<std::string>("text") + ", page " +
  //                                           std::to_string(page) + ", " +
  //                                           std::to_string(tags.size()) + " tags");
  //     }
  template <class T>
  T query(std::string_view name) const {
    const values::origin source{"query parameter", name};
    return values::typed<T>(source, [&, left = query()](std::string& text) mutable {
      return values::next_pair(left, source, text);
    });
  }
  // The same, and `otherwise` if there is none.
  template <class T>
  T query(std::string_view name, T otherwise) const {
    std::optional<T> found = query<std::optional<T>>(name);
    return found ? std::move(*found) : std::move(otherwise);
  }
  // The first value with that name, decoded ('+' means a space); empty if there is none, or if it
  // is malformed.
  std::optional<std::string> query_value(std::string_view name) const;
  std::string_view host() const noexcept { return head_->host; }
  http::fields fields() const noexcept { return head_->fields; }
  // The first field with that name; "" if there is none.
  std::string_view field(std::string_view name) const noexcept { return head_->fields[name]; }
  const message_head& head() const noexcept { return *head_; }
  // The value of the first cookie with that name, exactly as sent; empty if there is none.
  std::optional<std::string_view> cookie(std::string_view name) const noexcept;
  // The same, typed. Errors: status_error 400, which names the cookie, if there is none or if it
  // does not fit; cookie<std::optional<T>>() is empty if there is none.
  template <class T>
  T cookie(std::string_view name) const {
    return values::typed<T>({"cookie", name}, [&, at = std::size_t{0}](std::string& text) mutable {
      const auto found = nth_cookie(name, at++);
      if (found) text = *found;
      return found.has_value();
    });
  }

  // The whole body, in a handler that is no coroutine; in a coroutine, the part that read_all() has
  // read.
  std::string_view body() const noexcept { return body_; }
  // For a coroutine: waits for the next piece of the body. The piece is valid until the next call;
  // "" at the end. The first call asks a waiting peer to continue (100 Continue). One call at a
  // time: a second one is a usage_error. A call that is given up (when_any) loses no bytes. Errors:
  // throws refused if the body exceeds its limit, arrives too slowly or is malformed, and the
  // errors of a stream.
  task<std::string_view> read() {
    return collected_.empty() ? source_->next_piece() : read_behind_collected();
  }
  // Reads the rest of the body, which body() then returns. Throws as read() does. The bytes that an
  // abandoned call has read come first at the next call, and at the next read().
  task<std::string_view> read_all();
  // The fields behind a chunked body that was read to its end.
  http::fields trailer() const noexcept { return trailer_; }

  // Memory for this request. All of it is freed in one step when the answer was sent, so that the
  // memory of a connection does not grow with the number of its requests. In a handler that is no
  // coroutine, this_context() is the same memory. A response may refer to it (response::view), and
  // so may an exception from the handler.
  context& memory() const noexcept { return *memory_; }

  // Becomes requested when the server stops; for handlers that take long.
  std::stop_token stopping() const noexcept { return stopping_; }

  // The address and port of the other end of the connection: a proxy's, if the request came through
  // a proxy, unless the proxy has named its client by the PROXY protocol
  // (server_options::proxy_protocol). Call it in the handler. Cost: a system call. Throws io_error
  // if the client has disconnected, usage_error for a client of a Unix socket.
  endpoint peer() const { return source_->peer(); }

  // Whether the other end has an address, which peer() returns. Clients of a Unix socket have none.
  bool has_peer() const noexcept { return source_->has_address(); }

  // The address of the client, behind the proxies that the server trusts
  // (server_options::trusted_proxies): the address that the last of them has written in
  // X-Forwarded-For, or in Forwarded. Fields from other peers are ignored. If peer() is not such a
  // proxy, this is peer(). If a proxy does not name the sender of the request, this is the address
  // of the proxy. The port is 0 if it is not named. Empty for a client of a Unix socket. Call it in
  // the handler. Cost: a system call. Throws io_error if the client has disconnected.
  //
  // Example (declarations):
  //     #include <troupe/http/response.hpp>
  //     troupe::http::response who_am_i(const troupe::http::request& asked) {
  //       const auto client = asked.client();
  //       return troupe::http::response::text(client ? client->to_string() : "a local client");
  //     }
  std::optional<endpoint> client() const { return source_->client(); }
  // Whether the request came encrypted to this server (https).
  bool secure() const noexcept { return source_->secure(); }
  // Whether the answer can no longer reach the client: its connection has failed, or it has reset
  // the stream. An io_error, tls_error or timed_out that a handler throws is then caused by the
  // client.
  bool is_lost() const noexcept { return source_->is_lost(); }
  // The client's certificate, which the server has verified; empty if the client has none, if the
  // server does not ask for it (tls_options::client_certificates), or without TLS. Call it in the
  // handler. Cost: its text is made for each call.
  //
  // Example (declarations):
  //     #include <troupe/http/response.hpp>
  //     troupe::http::response who_am_i(const troupe::http::request& asked) {
  //       const auto shown = asked.client_certificate();
  //       if (!shown) return troupe::http::response(403);
  //       return troupe::http::response::text(shown->subject);
  //     }
  std::optional<tls_certificate> client_certificate() const {
    return source_->client_certificate();
  }

  // A token that is requested when the client disconnects while its answer is made or sent. For a
  // coroutine that takes long, and for a function that streams the answer (keep the token, since
  // the request no longer exists by then).
  //
  // The client counts as gone when its connection was reset, when it has closed the connection, or
  // when a send to it has failed. It also counts as gone when it has ended its sending half, which
  // looks the same as a close, unless server_options::half_close_is_gone is false; the handler's
  // answer is still sent. Unread data of the body or of a next request does not hide a
  // disconnection: if a body is not read yet, the system is asked to buffer up to 1 MiB. A close
  // behind more data than the system buffers is detected only when that data is read.
  //
  // Call it in the handler; in a handler that is no coroutine the token shows whether the client
  // has disconnected so far. Not for a WebSocket, which reports this itself. Thread: the stop is
  // requested on any thread. Cost: nothing for requests that do not ask; otherwise an allocation
  // and one I/O operation, which ends with the request.
  //
  // Example (declarations):
  //     #include <troupe/http/response.hpp>
  //     #include <troupe/task/event.hpp>
  //     troupe::task<troupe::http::response> wait_long(const troupe::http::request& asked,
  //                                                    troupe::event done) {
  //       // throws cancelled, and the connection ends
  //       co_await done.wait().stop(asked.client_gone());
  //       co_return troupe::http::response::text("done");
  //     }
  std::stop_token client_gone() const { return source_->client_gone(); }

 private:
  friend struct compress;
  friend class connection;
  friend class handling;
  friend class values::kept_share;
  friend class multipart_reader;
  friend class h2::exchange;
  std::string_view path_text(std::string_view name) const;
  task<std::string_view> read_behind_collected();
  task<> collect();
  std::optional<std::string_view> nth_cookie(std::string_view name, std::size_t at) const noexcept;
  // The memory and the files of the body and its readers. A server calls this for each request, and
  // few requests have readers.
  std::size_t kept_bytes() const noexcept {
    // order: relaxed  a statistic; publishes nothing
    return collected_.capacity() +
           (kept_ == nullptr ? 0 : kept_->bytes.load(std::memory_order_relaxed));
  }
  std::size_t kept_files() const noexcept {
    // order: relaxed  a statistic; publishes nothing
    return kept_ == nullptr ? 0 : kept_->files.load(std::memory_order_relaxed);
  }
  const message_head* head_ = nullptr;
  const path_values* path_values_ = nullptr;
  std::string_view path_, body_;
  http::fields trailer_;
  std::string collected_;                       // read by read_all(), by an abandoned call as well
  std::shared_ptr<values::kept_of_body> kept_;  // by forms and multipart_readers; null without
  request_source* source_ = nullptr;
  std::stop_token stopping_;
  context* memory_ = nullptr;
  bool is_collecting_ = false;  // a read_all() is under way
  bool is_taken_ = false;       // a read() has returned the collected bytes
  bool is_parted_ = false;      // a multipart_reader has taken a part of the body
};

}  // namespace troupe::http
