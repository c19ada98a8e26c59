// cookie_pairs: the pairs of a field Cookie.
#pragma once

#include <string_view>

namespace troupe::http {

struct cookie_pair {
  std::string_view name, value;
};

// Takes the first pair off "a=1; b=2". A pair without '=' has no name, and a value in quotes keeps
// them, as browsers do (RFC 6265bis, 5.6).
cookie_pair take_cookie_pair(std::string_view& left) noexcept;

}  // namespace troupe::http
