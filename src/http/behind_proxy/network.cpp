#include "troupe/http/behind_proxy/network.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "http/behind_proxy/address.hpp"
#include "troupe/base/error.hpp"

namespace troupe::http {
namespace {

using octets = std::array<std::uint8_t, 16>;

// The prefix of an IPv4 address in its form of IPv6: ::ffff:0:0/96.
constexpr unsigned v4_prefix = 96;

octets octets_of(const endpoint& address) noexcept {
  octets bytes{};
  if (address.is_v6()) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr,
                16);
  } else {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr,
                4);
  }
  return bytes;
}

// The first `bits` of the address; the others are 0.
octets first_bits(octets address, unsigned bits) noexcept {
  for (std::size_t i = 0; i < address.size(); ++i) {
    const unsigned kept_bits = std::min(8u, bits);
    address[i] = static_cast<std::uint8_t>(address[i] & (0xff00u >> kept_bits));
    bits -= kept_bits;
  }
  return address;
}

[[noreturn]] void refuse(std::string_view text, const char* why) {
  throw option_error("troupe: http::network \"" + std::string(text) + "\": " + why);
}

}  // namespace

network::network(std::string_view text) {
  if (text == "unix") {
    is_unix_ = true;
    return;
  }
  const std::size_t slash = text.find('/');
  const std::string_view written = text.substr(0, slash);
  std::optional<endpoint> at = v4_of(written);
  const unsigned before = at ? v4_prefix : 0;
  if (!at) at = v6_of(written);
  if (!at) refuse(text, "must be like 10.0.0.0/8, 2001:db8::/32, 192.0.2.1 or unix");
  address_ = octets_of(*at);
  if (slash == std::string_view::npos) return;
  const std::optional<std::uint16_t> bits = port_of(text.substr(slash + 1));
  if (!bits || *bits + before > 128)
    refuse(text, "the length of the prefix is no number up to 32, or up to 128 for IPv6");
  prefix_ = static_cast<std::uint8_t>(*bits + before);
  if (first_bits(address_, prefix_) != address_)
    refuse(text, "the address has bits behind the prefix, which would be ignored: set them to 0");
}

bool network::contains(const endpoint& address) const noexcept {
  return !is_unix_ && first_bits(octets_of(address), prefix_) == address_;
}

bool contains(std::span<const network> all, const endpoint* address) noexcept {
  return std::ranges::any_of(all, [&](const network& trusted) {
    return address == nullptr ? trusted.is_unix() : trusted.contains(*address);
  });
}

}  // namespace troupe::http
