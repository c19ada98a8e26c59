// Addresses as text, as the fields and headers of proxies have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/io/endpoint.hpp"

namespace troupe::http {

// "192.0.2.1", or "2001:db8::1" without brackets. Empty if the text is no such address.
std::optional<endpoint> v4_of(std::string_view text, std::uint16_t port = 0) noexcept;
std::optional<endpoint> v6_of(std::string_view text, std::uint16_t port = 0) noexcept;

// Whose connections and requests count as one client's: an IPv4 address, even if it came within
// IPv6 (::ffff:192.0.2.1), and the /64 network of an IPv6 address, since each host can use a whole
// network. Addresses of one link (fe80::/10) share their network, and count by
// themselves.
std::string client_key(const endpoint& client);

// Decimal digits without leading zeros, at most 65535.
std::optional<std::uint16_t> port_of(std::string_view text) noexcept;

}  // namespace troupe::http
