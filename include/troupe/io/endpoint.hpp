// endpoint: an address of IPv4 or IPv6, and a port.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

// A value; 28 bytes. Names of hosts are not resolved here.
//
// Example:
//     const auto here = troupe::endpoint::parse("[::1]:8080");
//     std::cout << here.to_string() << ' ' << here.port() << '\n';
class endpoint {
 public:
  // 0.0.0.0, port 0.
  endpoint() noexcept : endpoint(any(0)) {}

  // "127.0.0.1:80", "[::1]:80". Throws option_error for anything else.
  static endpoint parse(std::string_view text);
  static endpoint any(std::uint16_t port) noexcept { return v4(INADDR_ANY, port); }
  static endpoint loopback(std::uint16_t port) noexcept { return v4(INADDR_LOOPBACK, port); }
  // All addresses of IPv6; as a listener's, those of IPv4 as well where the system is set so.
  static endpoint any_v6(std::uint16_t port) noexcept;
  static endpoint loopback_v6(std::uint16_t port) noexcept;

  std::uint16_t port() const noexcept;
  bool is_v6() const noexcept { return address_.family.sa_family == AF_INET6; }
  // As parse() takes it.
  std::string to_string() const;

  // What the system's calls take, and fill.
  sockaddr* data() noexcept { return &address_.family; }
  const sockaddr* data() const noexcept { return &address_.family; }
  socklen_t size() const noexcept { return is_v6() ? sizeof address_.v6 : sizeof address_.v4; }
  static constexpr socklen_t capacity() noexcept { return sizeof(sockaddr_in6); }

  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  static endpoint v4(std::uint32_t address, std::uint16_t port) noexcept;
  explicit endpoint(const sockaddr_in6& of) noexcept { address_.v6 = of; }
  union {
    sockaddr family;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_;
};

}  // namespace troupe
