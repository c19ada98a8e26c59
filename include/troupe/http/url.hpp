// url: an address of the scheme http or https.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::http {

// A URL, as a value. It has no user name and no fragment: parse() refuses the former and drops the
// latter.
//
// Example:
//     const auto at = troupe::http::url::parse("https://example.org/a/b?c");
//     std::cout << at.host() << ' ' << at.port() << ' ' << at.target() << ' '
//               << at.resolve("../d").to_string() << '\n';
class url {
 public:
  // Parses a URL. Bytes of the path and of the query that a URL may not contain (spaces, bytes
  // beyond ASCII) are encoded with %. Throws client_error, bad_url, if the text has no scheme or an
  // unknown scheme, a user name, a control byte, no host, an invalid host or port, or more than
  // 8,192 bytes.
  static url parse(std::string_view text);
  // The same, but nothing is encoded: the path and the query are sent as the text has them. Also
  // throws client_error, bad_url, for a space and for a byte beyond ASCII in them.
  static url parse_as_written(std::string_view text);
  // The URL of a reference ("d", "../d", "/d", "//host/d", "?d") in a document at this URL, by RFC
  // 3986. A reference with a scheme is parsed by itself. Throws as parse() does.
  url resolve(std::string_view reference) const;

  // True for https, false for http.
  bool secure() const noexcept { return secure_; }
  // In lower case; an IPv6 address in brackets.
  const std::string& host() const noexcept { return host_; }
  // The port that the text names, else 443 for https and 80 for http.
  std::uint16_t port() const noexcept { return port_; }
  // "/path?query", encoded; "/" if the text has neither.
  const std::string& target() const noexcept { return target_; }
  // The host, with the port if it is not the scheme's default.
  std::string authority() const;
  // "https://example.org"
  std::string origin() const;
  std::string to_string() const { return origin() + target_; }

 private:
  url() = default;
  static url parse(std::string_view text, bool encodes);
  bool secure_ = false;
  std::uint16_t port_ = 80;
  std::string host_, target_;
};

}  // namespace troupe::http
