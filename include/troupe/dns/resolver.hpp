// resolver and resolve: find the addresses of a host, by a query to DNS servers.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/dns/error.hpp"
#include "troupe/dns/options.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

namespace dns {

// The call of lookup(), in a limited_task: asks when it is awaited.
class lookup_call {
 public:
  using result = std::vector<endpoint>;
  lookup_call(std::shared_ptr<const resolver_options> options, std::string host,
              std::uint16_t port) noexcept
      : options_(std::move(options)), host_(std::move(host)), port_(port) {}
  task<result> start(tasks::limits within) &&;

 private:
  std::shared_ptr<const resolver_options> options_;  // null: the default options
  std::string host_;
  std::uint16_t port_;
};
using lookup = tasks::limited_task<lookup_call>;

}  // namespace dns

// Finds the addresses of hosts. Thread: any. Copies refer to the same resolver. Lifetime: it may be
// destroyed during a query, which continues. Any number of queries may be under way. No result is
// cached: each query uses a new socket with a new port: an attacker who forges answers has two
// numbers to guess.
//
// Example (declarations):
//     troupe::task<troupe::tcp_stream> connect_by_name(std::string host) {
//       const auto found = co_await troupe::resolve(host, 443).timeout(std::chrono::seconds(5));
//       for (const troupe::endpoint& address : found) {
//         try { co_return co_await troupe::tcp_stream::connect(address); }
//         catch (const troupe::io_error&) {}
//       }
//       throw std::runtime_error(host + " cannot be reached");
//     }
class resolver {
 public:
  resolver() noexcept {}
  // Throws option_error.
  explicit resolver(resolver_options options);

  // Returns the addresses of a host, at least one, with this port, in the order in which to try
  // them (RFC 6724: those that this machine reaches best come first). Await it in a handler or a
  // task, optionally with .timeout(span) and .stop(token). A numeric address ("192.0.2.1",
  // "[2001:db8::1]", "fe80::1%eth0") is returned at once, and so is localhost: ::1 and 127.0.0.1. A
  // name that ends in a dot is complete. Pass names beyond ASCII in their xn-- form.
  //
  // Cost: no thread waits for a server, but the calling thread reads /etc/resolv.conf and
  // /etc/hosts for each name (about 50 µs). Two to four descriptors during the query. Errors:
  // resolve_error, timed_out, cancelled; io_error if no descriptor is left.
  dns::lookup resolve(std::string host, std::uint16_t port) const {
    return dns::lookup(std::in_place, options_, std::move(host), port);
  }

 private:
  std::shared_ptr<const resolver_options> options_;
};

// The same, by the system's servers.
inline dns::lookup resolve(std::string host, std::uint16_t port) {
  return dns::lookup(std::in_place, nullptr, std::move(host), port);
}

}  // namespace troupe
