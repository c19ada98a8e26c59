// protocol: a connection as callbacks of a plain struct, an alternative to coroutines.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "troupe/io/tcp.hpp"
#include "troupe/protocol/admission.hpp"
#include "troupe/protocol/connection.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe {

namespace protocols {

// Counts the connections of a server, and holds the options for all of them.
class connection_limit final : public admission {
 public:
  explicit connection_limit(protocol_options chosen)
      : admission(false), options_(std::move(chosen)) {}
  bool is_full() noexcept override;

  // Permission for one connection, until it is destroyed.
  class permit {
   public:
    explicit permit(std::shared_ptr<connection_limit> limit) noexcept;
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&&) = delete;
    ~permit();
    const protocol_options& options() const noexcept { return limit_->options_; }

   private:
    std::shared_ptr<connection_limit> limit_;
  };

 private:
  const protocol_options options_;
  std::mutex mutex_;
  std::size_t taken_ = 0;  // only the server's task makes permits
};

template <class Stream>
wire wire_of(Stream& accepted) noexcept {
  return {accepted, [](stream& closed) { static_cast<Stream&>(closed).shutdown_write(); },
          [](const stream& asked) -> endpoint {
            if constexpr (requires(const Stream& it) { it.peer(); }) {
              return static_cast<const Stream&>(asked).peer();
            } else {
              throw usage_error(
                  "troupe: connection::peer: only a TCP connection has an address; do not call it "
                  "for other streams");
            }
          }};
}

template <class Protocol, class Stream, class... Args>
task<> serve_one(Stream peer, connection_limit::permit held, Args... args) {
  Protocol protocol(std::move(args)...);
  callbacks_of<Protocol> handlers(protocol);
  co_await run(handlers, wire_of(peer), held.options(), failures_to::program);
}

}  // namespace protocols

// A protocol is a struct with any of the following members. Each function may take a connection&
// before its other parameters, and may be a coroutine:
//
//   static initial_bytes
//       a text that is sent first
//   connection_made()
//   data_received(bytes)
//       the received bytes, as a span<const std::byte> or a string_view
//   lines_received(lines)
//       instead of data_received: all complete lines, as a span<const string_view>, without their
//       ends ("\n" or "\r\n"); an incomplete line is kept, and dropped when the connection ends
//   send_complete()
//       the return value of the last callback was sent completely
//   connection_closed()
//       the last callback, for every reason of an end
//   error(std::exception_ptr)
//       an exception from a callback, or a refusal by the system; the connection then ends
//
// The return values of connection_made, data_received, lines_received and send_complete are sent:
// nothing, a text, a view of a text, a span of bytes, a file_to_send, or an optional of these.
// Callbacks run one after the other, each after the return value of the one before was sent: a peer
// that does not read causes no further callbacks. Return values of connection_closed and error are
// dropped.
//
// Each connection has a context of its own: this_context() returns it in a callback (a coroutine
// takes a connection& and calls its memory()). The context is rolled back when the return value of
// a callback was sent. Returned views may therefore point into it, and however long a connection
// lives, it needs no more memory than its largest callback. The arguments of a callback are valid
// until then too: a coroutine may take them by value or by reference, and read them after a wait.
//
// Errors: if there is no error(), an exception from a callback is a failure, which run() throws. A
// peer that has disconnected or was too slow is no failure; connection_closed() reports it. An
// exception from error() itself is a failure. In a server, the exception of a failure may refer to
// the context, which is kept for it. A task that awaits run_protocol() or connect_protocol() gets
// the exception after the context has ended.

// Accepts connections; each runs in a task of its own, with its own `Protocol(args...)`. Completes
// when options.stop was requested; the connections then end by themselves, and their peers can
// read everything that was sent. Cost of a connection: less than 2 KB while it is idle; during a
// callback also 4 KiB for its context. Errors: the exceptions of accept(); if no descriptor is
// left it waits instead.
//
// Example:
//     struct Shout {
//       std::string lines_received(std::span<const std::string_view> lines) {
//         std::string all;
//         for (std::string_view line : lines) all += std::string(line) + "!\n";
//         return all;
//       }
//     };
//     struct Caller {
//       static constexpr std::string_view initial_bytes = "hello\n";
//       void lines_received(troupe::connection& to, std::span<const std::string_view> lines) {
//         std::cout << lines.front() << '\n';
//         to.close();
//       }
//     };
//     troupe::task<> both(std::stop_source end) {
//       auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
//       const troupe::endpoint here = listener.local();
//       troupe::protocol_options options;
//       options.stop = end.get_token();
//       troupe::spawn(troupe::serve_protocol<Shout>(std::move(listener), options));
//       Caller caller = co_await troupe::connect_protocol<Caller>(here);
//       end.request_stop();
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(both(std::stop_source()));
//       rt.run();
//     }
template <class Protocol, class Listener, class... Args>
task<> serve_protocol(Listener listener, protocol_options options = {}, Args... args) {
  const auto limit = std::make_shared<protocols::connection_limit>(options);
  auto begin = [&limit, &args...](auto&& peer) {
    protocols::connection_limit::permit permit(limit);
    spawn(protocols::serve_one<Protocol>(std::move(peer), std::move(permit), args...));
  };
  co_await protocols::accept_within(*limit, listener, options.stop, begin);
}

// The same for one connected stream, with a protocol of the caller's, which must live until the
// task has ended.
template <class Stream, class Protocol>
task<> run_protocol(Stream peer, Protocol& protocol, protocol_options options = {}) {
  protocols::callbacks_of<Protocol> handlers(protocol);
  co_await protocols::run(handlers, protocols::wire_of(peer), options,
                          protocols::failures_to::awaiting_task);
}

// Connects, runs a `Protocol(args...)` until the connection ends, and returns it. Also throws the
// exceptions of connect().
template <class Protocol, class... Args>
task<Protocol> connect_protocol(endpoint to, protocol_options options = {}, Args... args) {
  tcp_stream peer = co_await tcp_stream::connect(to).stop(options.stop);
  Protocol protocol(std::move(args)...);
  protocols::callbacks_of<Protocol> handlers(protocol);
  co_await protocols::run(handlers, protocols::wire_of(peer), options,
                          protocols::failures_to::awaiting_task);
  co_return protocol;
}

}  // namespace troupe
