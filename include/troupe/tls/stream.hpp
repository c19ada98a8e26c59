// tls_stream: a stream that nobody else can read or change, over another stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/io/stream.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/tls/context.hpp"
#include "troupe/tls/error.hpp"

namespace troupe {

namespace tls {

class connection;
struct wire_of;
using connection_ptr = std::shared_ptr<connection>;

class handshake_call {
 public:
  using result = void;
  explicit handshake_call(connection_ptr on) noexcept : on_(std::move(on)) {}
  task<> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
};

class shutdown_call {
 public:
  using result = void;
  explicit shutdown_call(connection_ptr on) noexcept : on_(std::move(on)) {}
  task<> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
};

class read_call {
 public:
  using result = std::size_t;
  read_call(connection_ptr on, std::span<std::byte> to, bool whole) noexcept
      : on_(std::move(on)), to_(to), whole_(whole) {}
  task<std::size_t> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
  std::span<std::byte> to_;
  bool whole_;
};

class write_call {
 public:
  using result = std::size_t;
  write_call(connection_ptr on, std::string_view bytes, bool whole) noexcept
      : on_(std::move(on)), bytes_(bytes), whole_(whole) {}
  write_call(connection_ptr on, std::string&& owned) noexcept
      : on_(std::move(on)), owned_(std::move(owned)), whole_(true), owns_(true) {}
  task<std::size_t> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
  std::string_view bytes_;
  std::string owned_;
  bool whole_, owns_ = false;
};

}  // namespace tls

// What a certificate says.
struct tls_certificate {
  std::string subject, issuer;     // "CN=example.org,O=…"
  std::string serial;              // in hexadecimal digits
  std::vector<std::string> names;  // hosts and addresses that it is for
  std::chrono::sys_seconds not_before, not_after;
  std::string sha256;  // of the whole, in hexadecimal digits
};

// Its operations are those of a stream: co_await what they return, at once, with .timeout(span) and
// .stop(token) if you like. They throw io_error, timed_out and cancelled as a stream's do, and
// tls_error; after a tls_error all throw the same. One read and one write at a time may be under
// way, by the same actor or by two; a second one is a usage_error. Reads answer whatever the
// protocol wants an answer to without waiting for the peer, so that two that both write much do not
// block each other as long as both read. Move-only; closed when it goes, and what is under way then
// ends as cancelled. No thread waits. Cost: no allocation of ours a read or a write; idle it keeps
// some 2 KB beside OpenSSL's own 8 to 20 KB, while something is under way 17 KiB each way.
//
// Example (declarations):
//     troupe::task<std::string> first_line(troupe::tls_context trust, troupe::endpoint at,
//                                          std::string host) {
//       troupe::tcp_stream plain = co_await troupe::tcp_stream::connect(at);
//       auto peer = troupe::tls_stream::client(trust, std::move(plain), host);
//       co_await peer.handshake().timeout(std::chrono::seconds(10));
//       co_await peer.write_all("hello\n");
//       std::array<char, 256> line;
//       const std::size_t bytes = co_await peer.read(line);
//       co_await peer.shutdown();
//       co_return std::string(line.data(), bytes);
//     }
class tls_stream {
 public:
  tls_stream() noexcept {}  // not open

  // Over any stream, which is this one's from now on; or over two, one to read from and one to
  // write to (pipes). `host` is a name or an address in digits: the server is told it (SNI), and
  // its certificate must be of it. Throw option_error, std::bad_alloc.
  static tls_stream client(const tls_context& trust, stream&& over, const std::string& host);
  static tls_stream client(const tls_context& trust, stream&& in, stream&& out,
                           const std::string& host);
  static tls_stream server(const tls_context& self, stream&& over);
  static tls_stream server(const tls_context& self, stream&& in, stream&& out);

  // Before all else; once. Give it a limit of time: a peer may say nothing for ever. When it
  // throws, close.
  tasks::limited_task<tls::handshake_call> handshake() {
    return tasks::limited_task<tls::handshake_call>(std::in_place, on());
  }

  // As a stream's. The end of the stream (0) is one that the peer has declared: one that somebody
  // else has made is a tls_error, truncated.
  tasks::limited_task<tls::read_call> read(std::span<std::byte> to) { return reads(to, false); }
  tasks::limited_task<tls::read_call> read(std::span<char> to) {
    return reads(std::as_writable_bytes(to), false);
  }
  tasks::limited_task<tls::read_call> read_exact(std::span<std::byte> to) {
    return reads(to, true);
  }
  tasks::limited_task<tls::read_call> read_exact(std::span<char> to) {
    return reads(std::as_writable_bytes(to), true);
  }

  // As a stream's: at most 16 KiB of it, or all. When one did not come about, a part may have been
  // sent, and another part is on its way with the next one.
  tasks::limited_task<tls::write_call> write(std::string_view bytes) {
    return writes(bytes, false);
  }
  tasks::limited_task<tls::write_call> write(std::span<const std::byte> bytes) {
    return writes(as_text(bytes), false);
  }
  tasks::limited_task<tls::write_call> write_all(std::string_view bytes) {
    return writes(bytes, true);
  }
  tasks::limited_task<tls::write_call> write_all(const char* text) {
    return writes(std::string_view(text), true);
  }
  tasks::limited_task<tls::write_call> write_all(std::span<const std::byte> bytes) {
    return writes(as_text(bytes), true);
  }
  tasks::limited_task<tls::write_call> write_all(std::string&& bytes) {
    return tasks::limited_task<tls::write_call>(std::in_place, on(), std::move(bytes));
  }

  // Nothing more is written: the peer reads to the end, and knows that it was the end. One may go
  // on reading. Does not wait for the peer to do the same. What is written later is a usage_error;
  // a second shutdown does nothing.
  tasks::limited_task<tls::shutdown_call> shutdown() {
    return tasks::limited_task<tls::shutdown_call>(std::in_place, on());
  }

  bool is_open() const noexcept;
  // Without a word to the peer. What is under way ends as cancelled.
  void close() noexcept;
  // Of the stream that is read from; -1 when it is not open.
  int fd() const noexcept;
  // Of what has come from there a read would have something to say without waiting: bytes, the end,
  // or a failure. So who keeps a connection for later sees that the peer has said goodbye behind
  // its last answer. Not while a read is under way. False when it is not open.
  bool has_input() const noexcept;

  // From here on: when the handshake is done; else empty, or false.
  // What both agreed on; empty when nothing.
  std::string alpn() const;
  // "TLSv1.3"
  std::string version() const;
  // "TLS_AES_256_GCM_SHA384"
  std::string cipher() const;
  // It began with a session of an earlier connection.
  bool resumed() const;
  // Nothing when the peer has none, or the session was resumed without it.
  std::optional<tls_certificate> peer_certificate() const;

 private:
  friend tls::wire_of;
  explicit tls_stream(tls::connection_ptr made) noexcept : connection_(std::move(made)) {}
  static std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  const tls::connection_ptr& on() const;  // throws usage_error when it is not open
  tasks::limited_task<tls::read_call> reads(std::span<std::byte> to, bool whole) {
    return tasks::limited_task<tls::read_call>(std::in_place, on(), to, whole);
  }
  tasks::limited_task<tls::write_call> writes(std::string_view bytes, bool whole) {
    return tasks::limited_task<tls::write_call>(std::in_place, on(), bytes, whole);
  }
  struct owned {  // closes when it goes
    tls::connection_ptr is;
    owned() noexcept {}
    explicit owned(tls::connection_ptr made) noexcept : is(std::move(made)) {}
    owned(owned&& other) noexcept : is(std::move(other.is)) {}
    owned& operator=(owned&& other) noexcept;
    ~owned();
  };
  owned connection_;
};

}  // namespace troupe
