// client_wire: a client's connection to an origin, plain or TLS. wire_pool: the idle connections
// that a client keeps.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/wires/connection_slots.hpp"
#include "http/h2/framing/client_session.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::http {

// Carries one exchange at a time.
class client_wire {
 public:
  client_wire(tcp_stream plain, const parser_limits& limits)
      : reads(side::responses, limits), plain_(std::move(plain)) {}
  client_wire(tls_stream secure, const parser_limits& limits)
      : reads(side::responses, limits), secure_(std::move(secure)) {}

  // Bytes that came and were not consumed yet.
  std::string_view input() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes) noexcept;
  // Receives more input; returns 0 at the end of the stream. Views into input() become invalid.
  task<std::size_t> receive(const tasks::limits& within);
  // Sends all bytes. Each piece (piece_bytes) must be taken within `piece_time`.
  task<> send(std::string_view bytes, const tasks::limits& within,
              std::chrono::nanoseconds piece_time);

  // These two do not use the buffer above. send_some() sends some of the bytes. receive_some()
  // reads into `to` and returns 0 at the end of the stream.
  task<std::size_t> send_some(std::string_view bytes, std::chrono::nanoseconds at_most);
  task<std::size_t> receive_some(std::span<char> to, std::chrono::nanoseconds at_most,
                                 std::stop_token stop);
  bool is_secure() const noexcept { return secure_.is_open(); }
  // The connection changes to another protocol: `input` and `reads` are no longer used.
  void release_buffer() noexcept { buffer_ = {}; }

  // The protocol on which both ends have agreed by TLS; "" if there is none.
  std::string alpn() const { return secure_.is_open() ? secure_.alpn() : std::string(); }
  // Takes the stream of a wire that is not secure.
  tcp_stream take_plain() noexcept { return std::move(plain_); }

  // True when bytes have arrived that were not received, or the stream has ended.
  bool has_news() const;
  // Announces the connection's end to the server, by HTTP/2 and by TLS, as far as the system takes
  // the bytes at once. The connection is of no use afterwards. Thread: any.
  void say_goodbye() noexcept;
  int fd() const noexcept { return secure_.is_open() ? secure_.fd() : plain_.fd(); }

  // The stream below TLS, or the only one.
  stream& below() noexcept;

  parser reads;
  // The connection speaks HTTP/2, and this is its session; null otherwise.
  std::unique_ptr<h2::client_session> streams;
  std::chrono::nanoseconds idle_since{0};
  std::string origin;                   // under which wire_pool keeps it
  std::optional<connection_slot> slot;  // while it is in use

 private:
  static constexpr std::size_t buffer_bytes = 16 * 1024, piece_bytes = 64 * 1024;

  void make_room();

  tcp_stream plain_;
  tls_stream secure_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};
using wire_ptr = std::unique_ptr<client_wire>;

// Thread: any. No connection is closed while the mutex is held.
class wire_pool {
 public:
  explicit wire_pool(const client_options& options)
      : per_origin_(options.idle_per_origin), most_(options.idle), idle_time_(options.idle_time) {}

  ~wire_pool() { clear(); }
  wire_pool(const wire_pool&) = delete;
  wire_pool& operator=(const wire_pool&) = delete;

  // Returns a connection that is still good as far as can be seen, or null. Call it in a handler or
  // a task.
  wire_ptr take(const std::string& origin);
  // Keeps it, and then gives its slot back, so that a call that waits for the slot finds the
  // connection.
  void put(wire_ptr wire);
  // Closes the oldest connections of the origin but for that many.
  void trim(const std::string& origin, std::size_t most);
  std::size_t size();
  void clear();

 private:
  using idle_list = std::vector<wire_ptr>;  // the connection that became idle last is at the end
  // Those that are closed at the end of a function, when the mutex is released.
  struct ended_list : idle_list {
    ~ended_list() {
      for (const wire_ptr& wire : *this) wire->say_goodbye();
    }
  };

  wire_ptr take_latest(const std::string& origin, std::chrono::nanoseconds now, ended_list& ended);

  const std::size_t per_origin_, most_;
  const std::chrono::nanoseconds idle_time_;
  std::mutex mutex_;
  std::map<std::string, idle_list> all_;
  std::size_t count_ = 0;
};

}  // namespace troupe::http
