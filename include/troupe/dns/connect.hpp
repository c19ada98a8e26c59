// connect: connects to a host by name, at the first of its addresses that answers.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "troupe/dns/resolver.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/runtime/limited_task.hpp"

namespace troupe {

namespace dns {

// How long the connection waits for an address before it also tries the next one (RFC 8305).
inline constexpr std::chrono::milliseconds attempt_delay{250};

// The call of connect(), in a limited_task: connects when it is awaited.
class connect_call {
 public:
  using result = tcp_stream;
  explicit connect_call(std::vector<endpoint> to) noexcept : to_(std::move(to)) {}
  connect_call(std::string host, std::uint16_t port, resolver by) noexcept
      : host_(std::move(host)), port_(port), by_(std::move(by)) {}
  task<tcp_stream> start(tasks::limits within) &&;

 private:
  std::vector<endpoint> to_;  // if empty: the addresses of host_
  std::string host_;
  std::uint16_t port_ = 0;
  resolver by_;
};
using connecting = tasks::limited_task<connect_call>;

}  // namespace dns

// Connects to a host by name or by numeric address. Await it in a handler or a task, optionally
// with .timeout(span) and .stop(token). It tries the host's addresses in order, alternately IPv6
// and IPv4, IPv6 first. It tries the next address when the one before was refused, and also, at the
// same time, when that one has not answered within 250 ms (RFC 8305). The first connection is
// returned, the other attempts end. Errors: resolve_error, cancelled, timed_out; io_error, for the
// last address, if none answered.
//
// Example (declarations):
//     #include <troupe/dns/connect.hpp>
//     troupe::task<> greet(std::string host) {
//       troupe::tcp_stream peer =
//           co_await troupe::connect(host, 80).timeout(std::chrono::seconds(5));
//       co_await peer.write_all("hello\n");
//     }
inline dns::connecting connect(std::string host, std::uint16_t port, resolver by = {}) {
  return dns::connecting(std::in_place, std::move(host), port, std::move(by));
}
// The same for known addresses, at least one.
inline dns::connecting connect(std::vector<endpoint> to) {
  return dns::connecting(std::in_place, std::move(to));
}

}  // namespace troupe
