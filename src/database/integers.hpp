// integers: numbers without a sign in columns of databases, which have a sign. All 64 bits are
// kept.
#pragma once

#include <cstdint>

namespace troupe::database {

inline std::int64_t as_integer(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value);
}
inline std::uint64_t as_number(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value);
}

}  // namespace troupe::database
