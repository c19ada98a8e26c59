// resolver and resolve: the addresses of a host, asked of the servers of DNS.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

enum class resolve_failure : std::uint8_t {
  host_not_found,  // there is no such name: asking again gives the same
  no_data,         // the name is there, and has no address of the family that was asked for
  try_again,       // no server gave a proper answer in time: later it may
  bad_name,        // that cannot be the name of a host; nobody was asked
  in_simulation,   // under policy::simulated there are no servers; nobody was asked
};

// Why there is no address. The text names the host, the reason, and what the caller can do.
//
// Example:
//     try {
//       throw troupe::resolve_error(troupe::resolve_failure::host_not_found, "no.such.host",
//                                   "no such name");
//     } catch (const troupe::resolve_error& e) {
//       std::cerr << e.host() << ": " << e.what() << '\n';
//     }
class resolve_error : public error {
 public:
  resolve_error(resolve_failure why, const std::string& host, const std::string& detail);
  resolve_failure reason() const noexcept { return reason_; }
  const std::string& host() const noexcept { return host_; }

 private:
  resolve_failure reason_;
  std::string host_;
};

enum class address_family : std::uint8_t { any, v4, v6 };

struct resolver_options {
  // Not an aggregate: GCC 12 destroys what a temporary one holds twice when it lies in a co_await
  // expression.
  resolver_options() {}

  // Whom to ask, in this order. Default: those of /etc/resolv.conf.
  std::vector<endpoint> servers;
  // Appended to names with few dots. Used when `own_search` is true, be it empty; else those of
  // /etc/resolv.conf.
  std::vector<std::string> search;
  bool own_search = false;
  // True (default): /etc/hosts is looked at first.
  bool hosts_file = true;
  // Which addresses are wanted. Default: any.
  address_family family = address_family::any;
  // How long a server is given for its first answer (it doubles from round to round), default 2 s,
  // 1 ms at least; and how often all of them are asked, default 3, 1 to 10. Else an option_error.
  std::chrono::milliseconds try_for{2000};
  int tries = 3;
};

namespace dns {

class lookup_call {
 public:
  using result = std::vector<endpoint>;
  lookup_call(std::shared_ptr<const resolver_options> options, std::string host,
              std::uint16_t port) noexcept
      : options_(std::move(options)), host_(std::move(host)), port_(port) {}
  task<result> start(tasks::limits within) &&;

 private:
  std::shared_ptr<const resolver_options> options_;  // null: the default ones
  std::string host_;
  std::uint16_t port_;
};
using lookup = tasks::limited_task<lookup_call>;

}  // namespace dns

// How names are asked for. Any thread; copies are the same resolver, and it may go while it is
// asked: what is under way goes on. Any number of names may be asked for at a time. Nothing is
// kept: each asks anew, from a socket and a port of its own, so that one who guesses answers has
// two numbers to guess.
//
// Example (declarations):
//     troupe::task<troupe::tcp_stream> connect_by_name(std::string host) {
//       const auto found = co_await troupe::resolve(host, 443).timeout(std::chrono::seconds(5));
//       for (const troupe::endpoint& one : found) {
//         try { co_return co_await troupe::tcp_stream::connect(one); }
//         catch (const troupe::io_error&) {}
//       }
//       throw std::runtime_error(host + " cannot be reached");
//     }
class resolver {
 public:
  resolver() noexcept {}
  // Throws option_error.
  explicit resolver(resolver_options options);

  // Its addresses, one at least, in the order in which they should be tried (RFC 6724: those that
  // this machine reaches best come first), with this port. In a handler or a task; with
  // .timeout(span) and .stop(token) if you like. An address in digits ("192.0.2.1",
  // "[2001:db8::1]", "fe80::1%eth0") is given at once, and so is localhost: ::1 and 127.0.0.1. A
  // name that ends in a dot is complete. Names beyond ASCII are to be given in their xn-- form.
  // Throws resolve_error, timed_out, cancelled; io_error when there is no descriptor left.
  // No thread waits: but /etc/resolv.conf and /etc/hosts are read here and now, for each name (some
  // 50 µs). Two to four descriptors while it is under way.
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
