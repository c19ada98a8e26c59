// set_cookie: reads a cookie that a server asks a client to keep (RFC 6265bis, 5.6).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/http/values/cookie.hpp"

namespace troupe::http {

struct set_cookie {
  using time_point = std::chrono::system_clock::time_point;
  std::string name, value;
  std::string domain;  // in lower case, without a dot in front; "": none
  std::string path;    // "": none that counts
  bool secure = false, http_only = false;
  bool has_path = false;  // the attribute is there, and its value begins with '/'
  std::optional<same_site> site;
  std::optional<time_point> expires;  // Max-Age before Expires
};

// Nothing for a text that is no cookie. `now` is for Max-Age.
std::optional<set_cookie> read_set_cookie(std::string_view text, set_cookie::time_point now,
                                          std::size_t attribute_bytes);

// Reads a date as leniently as browsers do (RFC 6265bis, 5.1.1): servers write "21-Oct-2025" too.
std::optional<set_cookie::time_point> read_cookie_date(std::string_view text) noexcept;

}  // namespace troupe::http
