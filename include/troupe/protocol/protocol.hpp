// protocol: a connection as callbacks of a plain struct, an alternative to coroutines.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "troupe/io/tcp.hpp"
#include "troupe/protocol/connection.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/event.hpp"

namespace troupe {

namespace protocols {

// Counts the connections of a server, says when there is space for one more, and holds the options
// for all of them.
class connection_limit {
 public:
  explicit connection_limit(protocol_options chosen) : options_(std::move(chosen)) {}
  // Waits for space, in the server's task, which is the only one that makes permits. Returns false
  // after the stop.
  task<bool> wait(std::stop_token end);

  // Permission for one connection, until it is destroyed.
  class permit {
   public:
    explicit permit(std::shared_ptr<connection_limit> in) noexcept;
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&&) = delete;
    ~permit();
    const protocol_options& options() const noexcept { return in_->options_; }

   private:
    std::shared_ptr<connection_limit> in_;
  };

 private:
  const protocol_options options_;
  std::mutex mutex_;
  std::size_t taken_ = 0;
  event left_;
};

template <class Stream>
wire wire_of(Stream& of) noexcept {
  return {of, [](stream& one) { static_cast<Stream&>(one).shutdown_write(); },
          [](const stream& one) -> endpoint {
            if constexpr (requires(const Stream& it) { it.peer(); }) {
              return static_cast<const Stream&>(one).peer();
            } else {
              throw usage_error("troupe: connection::peer: this is no TCP connection");
            }
          }};
}

template <class Protocol, class Stream, class... Args>
task<> serve_one(Stream peer, connection_limit::permit held, Args... args) {
  Protocol protocol(std::move(args)...);
  face_of<Protocol> its(protocol);
  co_await run(its, wire_of(peer), held.options(), told::program);
}

}  // namespace protocols

// A protocol is a struct with any of these; each may take a connection& in front of what it takes,
// and may be a coroutine:
//
//   static initial_bytes        a text that is sent first of all
//   connection_made()
//   data_received(bytes)        a span<const std::byte> or a string_view, as it came; or instead
//   lines_received(lines)       a span<const string_view>: all the lines that are complete by now,
//                               without their ends ("\n" or "\r\n"); an unfinished line is kept,
//                               and dropped at the connection's end
//   send_complete()             when all that the last callback returned was sent
//   connection_closed()         last of all, whatever the reason
//   error(std::exception_ptr)   what a callback has thrown, or the system has refused; the
//                               connection ends then
//
// What connection_made, data_received, lines_received and send_complete return is sent: nothing, a
// text, a view of one, a span of bytes, a file_to_send, or an optional of these. Callbacks come one
// after the other, and the next one when all of that was sent: a peer that does not read is not
// served further. What connection_closed and error return is dropped.
//
// Each connection has a context of its own: this_context() gives it in a callback (a coroutine
// takes a connection&, and asks for its memory()). It is rolled back when what a callback returned
// was sent; so views that are returned may lie there, and a connection stays as small as its
// greatest callback, however long it lives. What a callback gets is valid until that, too: a
// callback that is a coroutine may take it by value or by reference, and read it after it has
// waited for something.
//
// An error that no error() takes is a failure, which run() throws, if a callback has thrown it;
// that a peer is gone, or was too slow, is none, for it is told by connection_closed(). What
// error() itself throws is a failure. Of a server, what a failure throws may lie in the context,
// which is kept for it; who awaits run_protocol() or connect_protocol() gets the exception when the
// context has gone.

// Accepts connections, each with a `Protocol(args...)` of its own, a task beside the server's.
// Returns when options.stop was requested; the connections then end by themselves, and let their
// peers read what was sent. Never throws for want of descriptors, but waits. Throws what accept()
// throws. Cost of a connection: less than 2 KB while it is idle; in a callback 4 KiB for its
// context as well.
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
  auto connection_limit = std::make_shared<protocols::connection_limit>(options);
  for (;;) {
    const bool more = co_await connection_limit->wait(options.stop);
    if (!more) co_return;
    bool stopped = false;
    try {
      auto peer = co_await listener.accept_when_able(options.stop);
      protocols::connection_limit::permit permit(connection_limit);
      spawn(protocols::serve_one<Protocol>(std::move(peer), std::move(permit), args...));
    } catch (const cancelled&) {
      if (!options.stop.stop_requested()) throw;
      stopped = true;
    }
    if (stopped) co_return;
  }
}

// The same for one stream that is connected already, and a protocol of the caller's, which lives
// until the task has ended.
template <class Stream, class Protocol>
task<> run_protocol(Stream peer, Protocol& protocol, protocol_options options = {}) {
  protocols::face_of<Protocol> its(protocol);
  co_await protocols::run(its, protocols::wire_of(peer), options, protocols::told::who_awaits);
}

// Connects, and runs a `Protocol(args...)` to the connection's end; gives it back then. Throws also
// what connect() throws.
template <class Protocol, class... Args>
task<Protocol> connect_protocol(endpoint to, protocol_options options = {}, Args... args) {
  tcp_stream peer = co_await tcp_stream::connect(to).stop(options.stop);
  Protocol protocol(std::move(args)...);
  protocols::face_of<Protocol> its(protocol);
  co_await protocols::run(its, protocols::wire_of(peer), options, protocols::told::who_awaits);
  co_return protocol;
}

}  // namespace troupe
