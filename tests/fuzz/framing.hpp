// framing: what our parser and Boost.Beast's read of the same bytes, and where they differ without
// a reason.
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
  bool last = false;  // of its connection, as we read it
  // and those of the trailer; those of one name in their order
  std::vector<std::pair<std::string, std::string>> fields;
  std::size_t end = 0;  // where the next one begins
};

// All requests of some bytes, and how it went on behind them.
struct reading {
  std::vector<framed> requests;
  bool refused = false;  // else more bytes are wanted
  http::fault why = http::fault::none;
  std::string reason;  // in words
  reading() {}
};

// At most so many requests are looked at.
inline constexpr std::size_t requests_max = 8;

// The bytes come in parts that end at these places, and then the rest.
reading by_us(std::string_view bytes, std::span<const std::size_t> arrivals = {});
// One request. False where Beast is not to be had.
bool beast_is_here() noexcept;
reading by_beast(std::string_view bytes);

// How we and Beast differ, or we and ourselves when the bytes come in parts; empty when that is as
// it should be.
std::string difference(std::string_view bytes);

}  // namespace troupe::test
