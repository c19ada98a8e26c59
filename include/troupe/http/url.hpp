// url: where something is, of the schemes http and https.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::http {

// A value. Names of users and fragments are no part of it: what has the first is refused, the
// second is left out.
//
// Example:
//     const auto at = troupe::http::url::parse("https://example.org/a/b?c");
//     std::cout << at.host() << ' ' << at.port() << ' ' << at.target() << ' ' <<
//     at.resolve("../d").to_string() << '\n';
class url {
 public:
  // Bytes that have no place in one (spaces, what is beyond ASCII) are encoded. Throws
  // client_error, bad_url: without a scheme, of another one, with the name of a user, a control
  // byte, no host, or more than 8,192 bytes.
  static url parse(std::string_view text);
  // What a reference means that is found there ("d", "../d", "/d", "//host/d", "?d"), by RFC 3986.
  // Throws as parse() does.
  url resolve(std::string_view reference) const;

  bool secure() const noexcept { return secure_; }
  // In small letters; an address of IPv6 in its brackets.
  const std::string& host() const noexcept { return host_; }
  std::uint16_t port() const noexcept { return port_; }
  // "/path?query"
  const std::string& target() const noexcept { return target_; }
  // The host, with the port when it is not the scheme's.
  std::string authority() const;
  // "https://example.org"
  std::string origin() const;
  std::string to_string() const { return origin() + target_; }

 private:
  url() = default;
  bool secure_ = false;
  std::uint16_t port_ = 80;
  std::string host_, target_;
};

}  // namespace troupe::http
