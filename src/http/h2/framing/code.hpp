// code: why a stream or a connection of HTTP/2 ends.
#pragma once

#include <cstdint>

namespace troupe::http::h2 {

// Error codes of RFC 9113, 7, as far as they are used here.
enum class code : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  refused_stream = 7,
  cancel = 8,
  enhance_your_calm = 11,
  inadequate_security = 12,
};

}  // namespace troupe::http::h2
