// proxy_header: reads the header of the PROXY protocol, versions 1 and 2, with which a proxy begins
// a connection to name the client for which it connects.
// https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "troupe/io/endpoint.hpp"

namespace troupe::http {

struct proxy_header {
  enum class origin : std::uint8_t {
    proxy,    // the proxy itself (LOCAL), or nothing is known: the connection's own address counts
    address,  // a client with the address `client`
    unnamed,  // a client of a Unix socket, which has no address
  };
  origin from = origin::proxy;
  endpoint client;
};

struct proxy_step {
  enum class kind : std::uint8_t {
    more,  // the header is not complete: at least `bytes` more belong to it
    done,  // the header has `bytes` bytes
    bad,   // the bytes begin no header, or a malformed one, or one that is too long
  };
  kind outcome;
  std::size_t bytes = 0;
};

// The minimum of server_options::proxy_protocol.header_bytes: no header of version 1 is longer, and
// none of version 2 with IPv4 or IPv6 addresses and without additions.
inline constexpr std::size_t proxy_header_least = 107;

// Reads the bytes that have arrived. A reader that reads exactly `more` bytes each time never reads
// a byte behind the header. `most`: bytes of the header. Pure.
proxy_step read_proxy_header(std::string_view came, std::size_t most, proxy_header& to) noexcept;

}  // namespace troupe::http
