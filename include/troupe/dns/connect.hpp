// connect: to a host by its name, whichever of its addresses answers first.
#pragma once

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

// How long an address is given before the next one is tried beside it (RFC 8305).
inline constexpr std::chrono::milliseconds attempt_delay{250};

class connect_call {
 public:
  using result = tcp_stream;
  explicit connect_call(std::vector<endpoint> to) noexcept : to_(std::move(to)) {}
  connect_call(std::string host, std::uint16_t port, resolver by) noexcept
      : host_(std::move(host)), port_(port), by_(std::move(by)) {}
  task<tcp_stream> start(tasks::limits within) &&;

 private:
  std::vector<endpoint> to_;  // or, when it is empty, of the host
  std::string host_;
  std::uint16_t port_ = 0;
  resolver by_;
};
using connecting = tasks::limited_task<connect_call>;

}  // namespace dns

// A connection to a host by its name, or its address in digits; in a handler or a task, with
// .timeout(span) and .stop(token) if you like. Its addresses are tried one after the other, those
// of IPv6 and IPv4 by turns, IPv6 first: the next one when the one before was refused, and beside
// it when that has not answered within 250 ms (RFC 8305). The first that answers is taken, the
// others are ended. Throws resolve_error, cancelled, timed_out; io_error, by the last address, when
// none answered.
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
// The same to some addresses that are known, one at least.
inline dns::connecting connect(std::vector<endpoint> to) {
  return dns::connecting(std::in_place, std::move(to));
}

}  // namespace troupe
