// endpoint: an IPv4 or IPv6 address, and a port.
#pragma once

#include "troupe/base/language.hpp"

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

// A value of 28 bytes. It holds a numeric address; use resolve() for host names.
//
// Example:
//     const auto here = troupe::endpoint::parse("[::1]:8080");
//     std::cout << here.to_string() << ' ' << here.port() << '\n';
class endpoint {
 public:
  // 0.0.0.0, port 0.
  endpoint() noexcept : endpoint(any(0)) {}

  // Parses "127.0.0.1:80" or "[::1]:80". Throws option_error for any other text.
  static endpoint parse(std::string_view text);
  static endpoint any(std::uint16_t port) noexcept { return v4(INADDR_ANY, port); }
  static endpoint loopback(std::uint16_t port) noexcept { return v4(INADDR_LOOPBACK, port); }
  // All addresses of IPv6. A listener at it also accepts IPv4, if the system is configured so.
  static endpoint any_v6(std::uint16_t port) noexcept;
  static endpoint loopback_v6(std::uint16_t port) noexcept;

  std::uint16_t port() const noexcept;
  bool is_v6() const noexcept { return address_.family.sa_family == AF_INET6; }
  // The text that parse() accepts.
  std::string to_string() const;

  // The address in the form that system calls read and write.
  sockaddr* data() noexcept { return &address_.family; }
  const sockaddr* data() const noexcept { return &address_.family; }
  socklen_t size() const noexcept { return is_v6() ? sizeof address_.v6 : sizeof address_.v4; }
  static constexpr socklen_t capacity() noexcept { return sizeof(sockaddr_in6); }

  friend bool operator==(const endpoint& a, const endpoint& b) noexcept;

 private:
  static endpoint v4(std::uint32_t address, std::uint16_t port) noexcept;
  explicit endpoint(const sockaddr_in6& address) noexcept { address_.v6 = address; }
  union {
    sockaddr family;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_;
};

}  // namespace troupe
