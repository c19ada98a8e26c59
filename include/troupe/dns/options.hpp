// resolver_options: how a resolver asks, and for which addresses.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/base/time_span.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe {

// Which addresses resolve() returns.
enum class address_family : std::uint8_t { any, v4, v6 };

// Options of a resolver.
//
// Example (declarations):
//     #include <troupe/dns/resolver.hpp>
//     troupe::resolver of_this_machine() {
//       troupe::resolver_options options;
//       options.servers = {troupe::endpoint::loopback(53)};
//       options.family = troupe::address_family::v4;
//       return troupe::resolver(options);
//     }
struct resolver_options {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  resolver_options() {}

  // The servers to ask, in this order. Default: from /etc/resolv.conf.
  std::vector<endpoint> servers;
  // Domains that are appended to names with few dots. Used, even if empty, if `own_search` is true;
  // otherwise from /etc/resolv.conf.
  std::vector<std::string> search;
  bool own_search = false;
  // True (default): /etc/hosts is read first.
  bool hosts_file = true;
  // The requested addresses. Default: any.
  address_family family = address_family::any;
  // try_for: time for a server's answer in the first round; it doubles from round to round. Default
  // 2 s, at least 1 ms. tries: how often all servers are asked. Default 3, from 1 to 10. Other
  // values are an option_error.
  time_span try_for = std::chrono::seconds(2);
  int tries = 3;
};

}  // namespace troupe
