// wire: one connection to a server, plain or TLS, that has taken us.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "nats/protocol/info.hpp"
#include "nats/protocol/parser.hpp"
#include "nats/protocol/servers.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/nats/options.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/context.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::nats {

struct wire {
  wire(server at, const parser_limits& limits) : address(std::move(at)), reads(limits) {}

  // Until `ends`. read() gives 0 at the end of the stream.
  task<std::size_t> read(std::span<char> into);
  // Each piece must be taken within that time.
  task<> write(std::string_view bytes, std::chrono::nanoseconds piece_time);

  const server address;
  parser reads;
  std::string rest;  // the bytes that came with the server's acceptance
  server_info about;
  std::stop_source ends;
  std::string reason;  // why it has ended; guarded by the client
  tcp_stream plain;
  tls_stream secure;  // over `plain`, where it is open
};
using wire_ptr = std::shared_ptr<wire>;

// The options of all connections; not changed.
struct wire_options {
  options chosen;
  std::optional<tls_context> trust;  // made when it is first needed
};

// Connects to the server, and sends the client's identity. Throws error (denied, unreachable),
// io_error, resolve_error, tls_error, option_error, cancelled.
task<wire_ptr> open_wire(server to, std::shared_ptr<wire_options> by);

}  // namespace troupe::nats
