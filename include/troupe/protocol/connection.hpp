// connection: the connection of a protocol class, for its callbacks, and the conversion of return
// values to bytes to send.
#pragma once

#include "troupe/base/language.hpp"

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
#include "troupe/base/time_span.hpp"
#include "troupe/context/context.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// A peer sent a line that is longer than protocol_options::line_bytes_max.
class line_too_long : public error {
 public:
  explicit line_too_long(std::size_t most);
  verdict judged() const noexcept override {
    return {verdict::party::peer, verdict::effect::none, verdict::again::never};
  }
};

// A return value of a callback: the file at a path, or a range of it, with texts before and after
// it. The file is opened and sent without a copy in the program (sendfile). If it cannot be opened,
// or is shorter than the range, this is an error of the connection.
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

// Options of serve_protocol, run_protocol and connect_protocol.
//
// Example:
//     troupe::protocol_options small;
//     small.connections_max = 100;
//     small.idle_max = std::chrono::seconds(75);
struct protocol_options {
  // a constructor, so that GCC 12 does not destroy an object inside a co_await expression twice
  protocol_options() noexcept {}
  // For a server: the maximum number of connections. At the limit it accepts none until one has
  // ended; new ones wait in the system's queue. Default 10,000.
  std::size_t connections_max = 10'000;
  // After this stop no connection is accepted. Each connection ends after the return value of its
  // callback was sent; it waits up to 2 s for the peer's end, so that the peer can read all of it.
  // Default: never.
  std::stop_token stop{};
  // Maximum time for which a peer may send nothing while the server waits for it (idle_max), and
  // for which it may read nothing while something is sent to it (stall_max). Then the connection
  // ends with timed_out. Default: no limit.
  time_span idle_max = time_span::max();
  time_span stall_max = time_span::max();
  // Maximum bytes that data_received gets in one call. Reading begins with 4 KiB, and doubles each
  // time that the buffer was filled. While a connection with the first size waits, it has neither a
  // buffer nor a heap. Default 64 KiB.
  std::size_t receive_bytes_max = std::size_t{64} << 10;
  // For lines_received: maximum bytes of a line. A longer line ends the connection with
  // line_too_long, after the lines before it were given and answered. Default 64 KiB.
  std::size_t line_bytes_max = std::size_t{64} << 10;
  // For each connection's heap.
  context_options context{};
};

namespace protocols {

// The return value of a callback, on its way to the peer.
struct outgoing {
  std::string owned;
  std::string_view view;  // of bytes stored elsewhere
  std::unique_ptr<file_to_send> file;
  std::optional<task<>> later;  // if the callback is a coroutine: fills in the other members
  void clear() noexcept {
    owned.clear();
    view = {};
    file.reset();
  }
};

// The arguments of a callback. They stay in place until the callback has ended, since a coroutine
// reads them later.
struct given {
  std::span<const std::byte> bytes{};
  std::string_view text{};  // the same bytes
  std::span<const std::string_view> lines{};
  std::exception_ptr error{};
};

// A stream, and the operations that depend on its kind.
struct wire {
  stream& peer_stream;
  void (*shut_down_write)(stream&);
  endpoint (*peer)(const stream&);
};

struct runner;

}  // namespace protocols

// The connection, for a callback. Lifetime: only while the protocol's object lives.
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

  // Sends these bytes after the return value of the callback.
  void send(std::string_view bytes) { more_.append(bytes); }
  // Ends the connection after everything was sent that was to be sent so far; its peer can read all
  // of it. Nothing more is received.
  void close() noexcept { closing_ = true; }
  bool closing() const noexcept { return closing_; }
  // The connection's heap; the same as this_context(). Memory that a callback allocates there is
  // freed when the callback's return value was sent. Data that must live longer belongs in the
  // protocol's object.
  context& memory() const noexcept { return *memory_; }
  // The peer's address. Throws io_error; usage_error for a stream that is not a TCP connection.
  endpoint peer() const { return wire_.peer(wire_.peer_stream); }

 private:
  friend protocols::runner;
  connection(const protocols::wire& on, context& memory) noexcept : wire_(on), memory_(&memory) {}
  protocols::wire wire_;
  context* memory_;
  std::string more_;
  bool closing_ = false;
};

namespace protocols {

// The interface by which the library calls a protocol's object. Each function may throw the
// exceptions of the callback.
class callbacks {
 public:
  callbacks() = default;
  callbacks(const callbacks&) = delete;
  callbacks& operator=(const callbacks&) = delete;
  virtual ~callbacks() = default;
  virtual void made(connection& by, outgoing& out) = 0;
  virtual void received(connection& by, const given& input, outgoing& out) = 0;
  virtual void sent(connection& by, outgoing& out) = 0;
  virtual void closed(connection& by, outgoing& out) = 0;
  virtual void failed(connection& by, const given& input, outgoing& out) = 0;

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

// Copies the text into the context, where it lives as long as other objects that the callback made
// there.
std::string_view keep_text(context& memory, std::string_view text);

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
                  "troupe: a protocol's callback returns a value that cannot be sent: it may "
                  "return nothing, a text, a view of a text, a span of bytes, a "
                  "troupe::file_to_send, an optional or a task of those");
    static_assert(std::is_lvalue_reference_v<Value> || std::is_trivially_copyable_v<type>,
                  "troupe: a protocol's callback returns bytes that would be destroyed before they "
                  "are sent: return a std::string, or a span of memory that lives longer (a "
                  "member, or this_context())");
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
class callbacks_of final : public callbacks {
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
  // Whether there is a member of that name, whatever its parameters.
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
  explicit callbacks_of(Protocol& protocol) noexcept : protocol_(protocol) {
    if constexpr (requires { std::string_view(Protocol::initial_bytes); })
      first = Protocol::initial_bytes;
    by_lines = takes_lines;
    hears_of_data = takes_lines || takes_bytes || takes_text;
    hears_of_sent = has_sent_by || has_sent;
    hears_of_errors = has_error<connection&, error_type> || has_error<error_type>;
  }

  void made(connection& by, outgoing& out) override {
    if constexpr (has_made_by) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.connection_made(by); });
    } else if constexpr (has_made) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.connection_made(); });
    }
  }
  void received(connection& by, const given& input, outgoing& out) override {
    if constexpr (has_lines<connection&, lines_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.lines_received(by, input.lines); });
    } else if constexpr (has_lines<lines_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.lines_received(input.lines); });
    } else if constexpr (has_data<connection&, bytes_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.data_received(by, input.bytes); });
    } else if constexpr (has_data<bytes_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.data_received(input.bytes); });
    } else if constexpr (has_data<connection&, text_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.data_received(by, input.text); });
    } else if constexpr (has_data<text_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.data_received(input.text); });
    }
  }
  void sent(connection& by, outgoing& out) override {
    if constexpr (has_sent_by) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.send_complete(by); });
    } else if constexpr (has_sent) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.send_complete(); });
    }
  }
  void closed(connection& by, outgoing& out) override {
    if constexpr (has_closed_by) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.connection_closed(by); });
    } else if constexpr (has_closed) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.connection_closed(); });
    }
  }
  void failed(connection& by, const given& input, outgoing& out) override {
    if constexpr (has_error<connection&, error_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.error(by, input.error); });
    } else if constexpr (has_error<error_type>) {
      take(by, out, [&]() -> decltype(auto) { return protocol_.error(input.error); });
    }
  }

 private:
  Protocol& protocol_;
};

// The receiver of a failure that no error() takes: the task that awaits the connection, or the
// program, as a failure of the task.
enum class failures_to : std::uint8_t { awaiting_task, program };

// Runs a connection from its beginning to its end.
task<> run(callbacks& handlers, wire on, const protocol_options& options, failures_to receiver);

}  // namespace protocols

}  // namespace troupe
