// connection: what the callbacks of a protocol class have of their connection, and what they return
// is made into.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/context/context.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// A peer sent a line that is longer than protocol_options::line_bytes_max.
class line_too_long : public error {
 public:
  explicit line_too_long(std::size_t most);
};

// Something that a callback returns: the file at that path, or a range of it, with texts before and
// behind it. It is opened and sent without a copy in the program (sendfile). What cannot be opened,
// or is shorter than the range, is the connection's error.
//
// Example:
//     troupe::file_to_send page{.path = "index.html"};
//     troupe::file_to_send part{.path = "film.mkv", .offset = 1'000'000, .bytes = 65'536};
struct file_to_send {
  static constexpr std::uint64_t to_the_end = std::numeric_limits<std::uint64_t>::max();
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t bytes = to_the_end;
  std::string before{}, after{};
};

// Of serve_protocol, run_protocol and connect_protocol.
//
// Example:
//     troupe::protocol_options small;
//     small.connections_max = 100;
//     small.idle_max = std::chrono::seconds(75);
struct protocol_options {
  // so that GCC 12 destroys one that is written inside a co_await once
  protocol_options() noexcept {}
  // Of a server: with so many it accepts no more until one has ended; others wait in the system's
  // queue. Default 10,000.
  std::size_t connections_max = 10'000;
  // No connection is accepted after this stop, and each ends when what its callback returned was
  // sent, and read, as far as its peer ends within 2 s. Default: never.
  std::stop_token stop{};
  // How long a peer may send nothing while it is waited for, and not read while something is sent:
  // then the connection ends with timed_out. Default: no limit.
  std::chrono::nanoseconds idle_max = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds stall_max = std::chrono::nanoseconds::max();
  // Bytes that data_received gets at most. Reading begins with 4 KiB, and twice as much each time
  // that all of it came. Who waits for no more than that has no buffer meanwhile, nor a heap.
  std::size_t receive_bytes_max = std::size_t{64} << 10;
  // Of lines_received: a longer line ends the connection with line_too_long, once those before it
  // were given and answered. Default 64 KiB.
  std::size_t line_bytes_max = std::size_t{64} << 10;
  // Of each connection's heap.
  context_options context{};
};

namespace protocols {

// What a callback returned, on its way to the peer.
struct outgoing {
  std::string owned;
  std::string_view view;  // of what lies elsewhere
  std::unique_ptr<file_to_send> file;
  std::optional<task<>> later;  // the callback is a coroutine: fills in the rest
  void clear() noexcept {
    owned.clear();
    view = {};
    file.reset();
  }
};

// What a callback is given. It stays where it is until the callback has ended: one that is a
// coroutine reads it later.
struct given {
  std::span<const std::byte> bytes{};
  std::string_view text{};  // the same bytes
  std::span<const std::string_view> lines{};
  std::exception_ptr error{};
};

// A stream, and what streams of its kind can do.
struct wire {
  stream& of;
  void (*shut_down_write)(stream&);
  endpoint (*peer)(const stream&);
};

struct runner;

}  // namespace protocols

// In a callback, and not longer than the connection's object lives.
//
// Example (declarations):
//     struct greeter {
//       std::string lines_received(troupe::connection& from,
//                                  std::span<const std::string_view> lines) {
//         if (lines.back() == "bye") from.close();
//         return "hello, " + std::string(lines.front()) + "\n";
//       }
//     };
class connection {
 public:
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Behind what the callback returns.
  void send(std::string_view bytes) { more_.append(bytes); }
  // When what is to be sent by then was sent, the connection ends: its peer reads all of it.
  // Nothing more is received.
  void close() noexcept { closing_ = true; }
  bool closing() const noexcept { return closing_; }
  // The connection's heap, as this_context(): what a callback allocates there goes when what it
  // returned was sent. What is to live longer belongs to the protocol's object.
  context& memory() const noexcept { return *memory_; }
  // Throws io_error; usage_error for a stream that is no TCP connection.
  endpoint peer() const { return wire_.peer(wire_.of); }

 private:
  friend protocols::runner;
  connection(const protocols::wire& on, context& memory) noexcept : wire_(on), memory_(&memory) {}
  protocols::wire wire_;
  context* memory_;
  std::string more_;
  bool closing_ = false;
};

namespace protocols {

// A protocol's object as the library calls it. Each call may throw what the callback throws.
class face {
 public:
  face() = default;
  face(const face&) = delete;
  face& operator=(const face&) = delete;
  virtual ~face() = default;
  virtual void made(connection& by, outgoing& out) = 0;
  virtual void received(connection& by, const given& what, outgoing& out) = 0;
  virtual void sent(connection& by, outgoing& out) = 0;
  virtual void closed(connection& by, outgoing& out) = 0;
  virtual void failed(connection& by, const given& what, outgoing& out) = 0;

  std::string_view first{};  // initial_bytes
  bool by_lines = false, hears_of_data = false, hears_of_sent = false, hears_of_errors = false;
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Into the context: as long-lived as what else the callback made there.
std::string_view keep_text(context& in, std::string_view text);

template <class Value>
void store(outgoing& out, context& memory, Value&& value) {
  using type = std::remove_cvref_t<Value>;
  if constexpr (is_optional<type>) {
    if (value) store(out, memory, *std::forward<Value>(value));
  } else if constexpr (std::same_as<type, file_to_send>) {
    out.file = std::make_unique<file_to_send>(std::forward<Value>(value));
  } else if constexpr (std::same_as<type, std::string> && !std::is_lvalue_reference_v<Value>) {
    out.owned = std::forward<Value>(value);
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    const std::string_view text(value);
    out.view = std::is_lvalue_reference_v<Value> || std::is_trivially_copyable_v<type>
                   ? text
                   : keep_text(memory, text);
  } else {
    static_assert(std::is_convertible_v<Value, std::span<const std::byte>>,
                  "troupe: a protocol's callback returns what cannot be sent: it may return "
                  "nothing, a text, a view of one, a span of "
                  "bytes, a troupe::file_to_send, an optional or a task of those");
    static_assert(std::is_lvalue_reference_v<Value> || std::is_trivially_copyable_v<type>,
                  "troupe: a protocol's callback returns bytes that would be gone before they are "
                  "sent: return a std::string, or a "
                  "span of what lives on (a member, or this_context())");
    const std::span<const std::byte> bytes(value);
    out.view = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
}

template <class T>
task<> resolve(task<T> callback, outgoing& out, context& memory) {
  if constexpr (std::is_void_v<T>) {
    co_await std::move(callback);
  } else {
    T value = co_await std::move(callback);
    store(out, memory, std::move(value));
  }
}

template <class Callback>
void take(connection& by, outgoing& out, Callback callback) {
  using returned = std::invoke_result_t<Callback&>;
  if constexpr (std::is_void_v<returned>) {
    callback();
  } else if constexpr (is_task<returned>) {
    out.later.emplace(resolve(callback(), out, by.memory()));
  } else {
    store<returned>(out, by.memory(), callback());
  }
}

template <class Protocol>
class face_of final : public face {
  template <class... Args>
  static constexpr bool has_data = requires(Protocol& p, Args... args) {
    p.data_received(args...);
  };
  template <class... Args>
  static constexpr bool has_lines = requires(Protocol& p, Args... args) {
    p.lines_received(args...);
  };
  static constexpr bool has_made_by = requires(Protocol & p, connection& by) {
    p.connection_made(by);
  };
  static constexpr bool has_made = requires(Protocol & p) { p.connection_made(); };
  static constexpr bool has_sent_by = requires(Protocol & p, connection& by) {
    p.send_complete(by);
  };
  static constexpr bool has_sent = requires(Protocol & p) { p.send_complete(); };
  static constexpr bool has_closed_by = requires(Protocol & p, connection& by) {
    p.connection_closed(by);
  };
  static constexpr bool has_closed = requires(Protocol & p) { p.connection_closed(); };
  template <class... Args>
  static constexpr bool has_error = requires(Protocol& p, Args... args) {
    p.error(args...);
  };
  using bytes_type = const std::span<const std::byte>&;
  using text_type = const std::string_view&;
  using lines_type = const std::span<const std::string_view>&;
  using error_type = const std::exception_ptr&;
  static constexpr bool takes_bytes = has_data<connection&, bytes_type> || has_data<bytes_type>;
  static constexpr bool takes_text =
      !takes_bytes && (has_data<connection&, text_type> || has_data<text_type>);
  static constexpr bool takes_lines = has_lines<connection&, lines_type> || has_lines<lines_type>;
  // There is one of that name, whatever it takes.
  static constexpr bool names_data = requires { &Protocol::data_received; };
  static constexpr bool names_lines = requires { &Protocol::lines_received; };
  static constexpr bool names_made = requires { &Protocol::connection_made; };
  static constexpr bool names_sent = requires { &Protocol::send_complete; };
  static constexpr bool names_closed = requires { &Protocol::connection_closed; };
  static constexpr bool names_error = requires { &Protocol::error; };
  static_assert(!names_data || takes_bytes || takes_text,
                "troupe: a protocol's data_received takes (std::span<const std::byte>) or "
                "(std::string_view), and a troupe::connection& in front if it likes");
  static_assert(!names_lines || takes_lines,
                "troupe: a protocol's lines_received takes (std::span<const std::string_view>), "
                "and a troupe::connection& in front if it likes");
  static_assert(!(takes_lines && (takes_bytes || takes_text)),
                "troupe: a protocol has data_received or lines_received, not both");
  static_assert(!names_made || has_made_by || has_made,
                "troupe: a protocol's connection_made takes nothing, or a troupe::connection&");
  static_assert(!names_sent || has_sent_by || has_sent,
                "troupe: a protocol's send_complete takes nothing, or a troupe::connection&");
  static_assert(!names_closed || has_closed_by || has_closed,
                "troupe: a protocol's connection_closed takes nothing, or a troupe::connection&");
  static_assert(!names_error || has_error<connection&, error_type> || has_error<error_type>,
                "troupe: a protocol's error takes a std::exception_ptr, and a troupe::connection& "
                "in front if it likes");

 public:
  explicit face_of(Protocol& of) noexcept : of_(of) {
    if constexpr (requires { std::string_view(Protocol::initial_bytes); })
      first = Protocol::initial_bytes;
    by_lines = takes_lines;
    hears_of_data = takes_lines || takes_bytes || takes_text;
    hears_of_sent = has_sent_by || has_sent;
    hears_of_errors = has_error<connection&, error_type> || has_error<error_type>;
  }

  void made(connection& by, outgoing& out) override {
    if constexpr (has_made_by) {
      take(by, out, [&]() -> decltype(auto) { return of_.connection_made(by); });
    } else if constexpr (has_made) {
      take(by, out, [&]() -> decltype(auto) { return of_.connection_made(); });
    }
  }
  void received(connection& by, const given& what, outgoing& out) override {
    if constexpr (has_lines<connection&, lines_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.lines_received(by, what.lines); });
    } else if constexpr (has_lines<lines_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.lines_received(what.lines); });
    } else if constexpr (has_data<connection&, bytes_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.data_received(by, what.bytes); });
    } else if constexpr (has_data<bytes_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.data_received(what.bytes); });
    } else if constexpr (has_data<connection&, text_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.data_received(by, what.text); });
    } else if constexpr (has_data<text_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.data_received(what.text); });
    }
  }
  void sent(connection& by, outgoing& out) override {
    if constexpr (has_sent_by) {
      take(by, out, [&]() -> decltype(auto) { return of_.send_complete(by); });
    } else if constexpr (has_sent) {
      take(by, out, [&]() -> decltype(auto) { return of_.send_complete(); });
    }
  }
  void closed(connection& by, outgoing& out) override {
    if constexpr (has_closed_by) {
      take(by, out, [&]() -> decltype(auto) { return of_.connection_closed(by); });
    } else if constexpr (has_closed) {
      take(by, out, [&]() -> decltype(auto) { return of_.connection_closed(); });
    }
  }
  void failed(connection& by, const given& what, outgoing& out) override {
    if constexpr (has_error<connection&, error_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.error(by, what.error); });
    } else if constexpr (has_error<error_type>) {
      take(by, out, [&]() -> decltype(auto) { return of_.error(what.error); });
    }
  }

 private:
  Protocol& of_;
};

// Who is told of a failure that no error() takes: who awaits the connection, or the program, as a
// failure of the task.
enum class told : std::uint8_t { who_awaits, program };

// The whole life of a connection.
task<> run(face& its, wire on, const protocol_options& options, told of_failures);

}  // namespace protocols

}  // namespace troupe
