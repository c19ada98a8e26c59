// tls_stream: an encrypted and authenticated stream over another stream.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/io/stream.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/tls/certificate.hpp"
#include "troupe/tls/context.hpp"
#include "troupe/tls/error.hpp"

namespace troupe {

namespace tls {

class connection;
class read_ahead;
struct wire_of;
using connection_ptr = std::shared_ptr<connection>;

// The call of stream::handshake(), in a limited_task.
class handshake_call {
 public:
  using result = void;
  explicit handshake_call(connection_ptr on) noexcept : on_(std::move(on)) {}
  task<> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
};

// The call of stream::shutdown(), in a limited_task.
class shutdown_call {
 public:
  using result = void;
  explicit shutdown_call(connection_ptr on) noexcept : on_(std::move(on)) {}
  task<> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
};

// The call of a read of a stream, in a limited_task.
class read_call {
 public:
  using result = std::size_t;
  // behind: the number of bytes that were put back and belong to an earlier reader (read_ahead).
  read_call(connection_ptr on, std::span<std::byte> to, bool whole, std::size_t behind = 0) noexcept
      : on_(std::move(on)), to_(to), behind_(behind), whole_(whole) {}
  task<std::size_t> start(tasks::limits within) &&;

 private:
  connection_ptr on_;
  std::span<std::byte> to_;
  std::size_t behind_;
  bool whole_;
};

// The call of a write of a stream, in a limited_task.
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

// Use: it has the operations of a stream. co_await their return values, at once, optionally with
// .timeout(span) and .stop(token). Move-only.
//
// Thread: no operation blocks a thread. Limits: one read and one write at a time may be under way,
// by one actor or by two; a second one is a usage_error. Cost: a read or write needs no allocation
// by this library. Memory: about 2 KB when idle, besides OpenSSL's own 8 to 20 KB; 17 KiB in each
// direction in which an operation is under way.
//
// Errors: io_error, timed_out and cancelled as of a stream, and tls_error. After a tls_error all
// operations throw the same. A read also sends the answers that the protocol itself requires,
// without a wait for the peer: two ends that both write much do not block each other as long as
// both read. Lifetime: the destructor closes the stream; operations that are under way then end as
// cancelled.
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
  // For streams::lines and its like, which give back the bytes that they read ahead.
  using read_ahead = tls::read_ahead;

  tls_stream() noexcept {}  // not open

  // Make a TLS stream over a stream, which then belongs to it; or over two, one to read from and
  // one to write to (pipes). `host` is a name or a numeric address: the server receives it (SNI),
  // and its certificate must be valid for it. Throw option_error, std::bad_alloc.
  static tls_stream client(const tls_context& trust, stream&& over, const std::string& host);
  static tls_stream client(const tls_context& trust, stream&& in, stream&& out,
                           const std::string& host);
  static tls_stream server(const tls_context& self, stream&& over);
  static tls_stream server(const tls_context& self, stream&& in, stream&& out);

  // Negotiates the connection. Call it once, before all other operations, with a time limit, since
  // a peer may stay silent. If it throws, close the stream.
  tasks::limited_task<tls::handshake_call> handshake() {
    return tasks::limited_task<tls::handshake_call>(std::in_place, on());
  }

  // As in a stream. The result 0 means an end that the peer has declared; an end without this
  // declaration, which an attacker could cause, is a tls_error, truncated.
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

  // As in a stream. write() sends at most 16 KiB, write_all() all bytes. If one fails, a part may
  // have been sent, and another part is sent together with the next write.
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

  // Declares the end of this direction: the peer reads to the end, and recognizes the end. Reading
  // is still possible. Does not wait for the peer's own end. Later writes are a usage_error; a
  // second shutdown does nothing.
  tasks::limited_task<tls::shutdown_call> shutdown() {
    return tasks::limited_task<tls::shutdown_call>(std::in_place, on());
  }

  bool is_open() const noexcept;
  // Closes the stream without a message to the peer. Operations that are under way end as
  // cancelled.
  void close() noexcept;
  // The descriptor of the stream that is read from; -1 if it is not open.
  int fd() const noexcept;
  // Whether a read would return at once, with bytes, the end, or a failure. With it an owner that
  // keeps a connection for later sees that the peer has ended it after its last answer. Do not call
  // it while a read is under way. False if the stream is not open.
  bool has_input() const noexcept;

  // The following functions are for the time after the handshake; before, they return empty values
  // or false.
  // The protocol on which both ends agreed; empty if there is none.
  std::string alpn() const;
  // "TLSv1.3"
  std::string version() const;
  // "TLS_AES_256_GCM_SHA384"
  std::string cipher() const;
  // Whether the connection continued a session of an earlier connection.
  bool resumed() const;
  // Empty if the peer has none, or if the session was resumed without it.
  std::optional<tls_certificate> peer_certificate() const;

 private:
  friend tls::wire_of;
  friend tls::read_ahead;
  explicit tls_stream(tls::connection_ptr connection) noexcept
      : connection_(std::move(connection)) {}
  static std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  const tls::connection_ptr& on() const;  // throws usage_error if it is not open
  tasks::limited_task<tls::read_call> reads(std::span<std::byte> to, bool whole) {
    return tasks::limited_task<tls::read_call>(std::in_place, on(), to, whole);
  }
  tasks::limited_task<tls::write_call> writes(std::string_view bytes, bool whole) {
    return tasks::limited_task<tls::write_call>(std::in_place, on(), bytes, whole);
  }
  struct owned {  // the destructor closes
    tls::connection_ptr connection;
    owned() noexcept {}
    explicit owned(tls::connection_ptr opened) noexcept : connection(std::move(opened)) {}
    owned(owned&& other) noexcept : connection(std::move(other.connection)) {}
    owned& operator=(owned&& other) noexcept;
    ~owned();
  };
  owned connection_;
};

namespace tls {

// As io::read_ahead, of a TLS stream: the bytes lie in its connection. For the library's own use.
class read_ahead {
 public:
  read_ahead() = default;
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;

  // The read of a reader that was dropped holds the connection until it has ended.
  static bool must_wait(const tls_stream& from) noexcept;
  tasks::limited_task<read_call> read(tls_stream& from, std::span<char> to) {
    return tasks::limited_task<read_call>(std::in_place, from.on(), std::as_writable_bytes(to),
                                          false, held_);
  }
  // A stream that was moved since the read began has no connection any more.
  void see(const tls_stream& from) {
    if (from.connection_.connection != nullptr && from.connection_.connection != on_) {
      on_ = from.connection_.connection;
      held_ = 0;
    }
  }
  void hold(std::string_view bytes);
  void take() noexcept;
  void give_back(std::string_view bytes) noexcept;

 private:
  connection_ptr on_;  // null before the first read
  std::size_t held_ = 0;
};

}  // namespace tls

}  // namespace troupe
