// framing: what our parser and Boost.Beast's read of the same bytes, and where they differ without
// a good reason.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/http/fault.hpp"

namespace troupe::test {

// One request as it was read.
struct framed {
  std::string method, target, body;
  int minor_version = 1;
  bool last = false;  // the last one of its connection, as our parser reads it
  // Also those of the trailer. Fields of the same name are in their order.
  std::vector<std::pair<std::string, std::string>> fields;
  std::size_t end = 0;  // where the next one begins
};

// All requests in some bytes, and what comes after them.
struct reading {
  std::vector<framed> requests;
  bool refused = false;  // false: the parser wants more bytes
  http::fault why = http::fault::none;
  std::string reason;  // the reason in words
  reading() {}
};

// At most this many requests are compared.
inline constexpr std::size_t requests_max = 8;

// The bytes come in parts that end at these positions, and then the rest.
reading by_us(std::string_view bytes, std::span<const std::size_t> arrivals = {});
// Reads one request. beast_is_here() returns false where Boost.Beast is not installed.
bool beast_is_here() noexcept;
reading by_beast(std::string_view bytes);

// Returns how our parser and Beast differ without a good reason, or how our parser differs from
// itself when the bytes come in parts; empty if neither does.
std::string difference(std::string_view bytes);

}  // namespace troupe::test
