#include "troupe/io/endpoint.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>

#include "base/text/zero_byte.hpp"
#include "troupe/base/error.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw option_error("troupe: endpoint \"" + std::string(text) +
                     "\": must be like 127.0.0.1:80 or [::1]:80");
}

std::uint16_t port_of(std::string_view text, std::string_view digits) {
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) refuse(text);
  return port;
}

}  // namespace

endpoint endpoint::v4(std::uint32_t address, std::uint16_t port) noexcept {
  endpoint result{sockaddr_in6{}};
  result.address_.v4.sin_family = AF_INET;
  result.address_.v4.sin_port = htons(port);
  result.address_.v4.sin_addr.s_addr = htonl(address);
  return result;
}

endpoint endpoint::any_v6(std::uint16_t port) noexcept {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  return endpoint(address);
}

endpoint endpoint::loopback_v6(std::uint16_t port) noexcept {
  endpoint result = any_v6(port);
  result.address_.v6.sin6_addr = in6addr_loopback;
  return result;
}

endpoint endpoint::parse(std::string_view text) {
  base::refuse_zero_byte(text, "endpoint::parse", "the text");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) refuse(text);
  std::string host(text.substr(0, colon));
  const std::uint16_t port = port_of(text, text.substr(colon + 1));
  endpoint result;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    result = any_v6(port);
    if (::inet_pton(AF_INET6, host.c_str(), &result.address_.v6.sin6_addr) != 1) refuse(text);
  } else {
    result = any(port);
    if (::inet_pton(AF_INET, host.c_str(), &result.address_.v4.sin_addr) != 1) refuse(text);
  }
  return result;
}

std::uint16_t endpoint::port() const noexcept {
  return ntohs(is_v6() ? address_.v6.sin6_port : address_.v4.sin_port);
}

std::string endpoint::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  const void* bytes =
      is_v6() ? static_cast<const void*>(&address_.v6.sin6_addr) : &address_.v4.sin_addr;
  ::inet_ntop(address_.family.sa_family, bytes, host.data(), host.size());
  const std::string port = ":" + std::to_string(this->port());
  return is_v6() ? "[" + std::string(host.data()) + "]" + port : host.data() + port;
}

bool operator==(const endpoint& a, const endpoint& b) noexcept {
  if (a.is_v6() != b.is_v6() || a.port() != b.port()) return false;
  if (!a.is_v6()) return a.address_.v4.sin_addr.s_addr == b.address_.v4.sin_addr.s_addr;
  return std::memcmp(&a.address_.v6.sin6_addr, &b.address_.v6.sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace troupe
