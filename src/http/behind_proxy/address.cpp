#include "http/behind_proxy/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace troupe::http {
namespace {

// inet_pton requires a text that ends with a zero byte, and would take one inside for the end.
bool read_address(int family, std::string_view text, void* to) noexcept {
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return false;
  std::ranges::copy(text, copy.begin());
  return ::inet_pton(family, copy.data(), to) == 1;
}

}  // namespace

std::optional<endpoint> v4_of(std::string_view text, std::uint16_t port) noexcept {
  endpoint result = endpoint::any(port);
  void* const address = &reinterpret_cast<sockaddr_in*>(result.data())->sin_addr;
  if (!read_address(AF_INET, text, address)) return std::nullopt;
  return result;
}

std::optional<endpoint> v6_of(std::string_view text, std::uint16_t port) noexcept {
  endpoint result = endpoint::any_v6(port);
  void* const address = &reinterpret_cast<sockaddr_in6*>(result.data())->sin6_addr;
  if (!read_address(AF_INET6, text, address)) return std::nullopt;
  return result;
}

std::string client_key(const endpoint& client) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!client.is_v6()) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(client.data());
    return ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  }
  in6_addr address = reinterpret_cast<const sockaddr_in6*>(client.data())->sin6_addr;
  constexpr std::size_t network_bytes = 8, v4_at = 12;
  if (IN6_IS_ADDR_V4MAPPED(&address))
    return ::inet_ntop(AF_INET, address.s6_addr + v4_at, text.data(), text.size());
  const bool is_of_link = IN6_IS_ADDR_LINKLOCAL(&address);
  if (!is_of_link) std::fill(address.s6_addr + network_bytes, std::end(address.s6_addr), 0);
  std::string key = ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  if (!is_of_link) key += "/64";
  return key;
}

std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
  if (text.empty() || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, port);
  if (bad != std::errc{} || rest != end) return std::nullopt;
  return port;
}

}  // namespace troupe::http
