// network: a range of addresses, such as the addresses of the proxies that a server trusts.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "troupe/io/endpoint.hpp"

namespace troupe::http {

// A value of 18 bytes. Its text is an address and the length of its prefix (CIDR): "10.0.0.0/8",
// "2001:db8::/32". Without a length it is one address. "unix" means all peers of Unix sockets,
// which have no address.
//
// Example:
//     const troupe::http::network inside("10.0.0.0/8");
//     std::cout << inside.contains(troupe::endpoint::parse("10.1.2.3:80")) << '\n';
class network {
 public:
  // Throws option_error for a text that is malformed, or whose address has bits behind its prefix.
  explicit network(std::string_view text);
  network(const char* text) : network(std::string_view(text)) {}

  // Whether the address is in this range; the port does not matter. An IPv4 address that is written
  // as an IPv6 one (::ffff:10.0.0.1), as a listener at any_v6() gives it, counts as IPv4.
  bool contains(const endpoint& address) const noexcept;
  bool is_unix() const noexcept { return is_unix_; }

  friend bool operator==(const network&, const network&) noexcept = default;

 private:
  std::array<std::uint8_t, 16> address_{};  // an IPv4 address is in its form of IPv6
  std::uint8_t prefix_ = 128;
  bool is_unix_ = false;
};

// Whether one of the networks contains the address. `address` is null for a peer of a Unix socket.
bool contains(std::span<const network> all, const endpoint* address) noexcept;

}  // namespace troupe::http
