// date: times as HTTP writes them. Whatever locale the program has chosen, as strftime and strptime
// would not be.
#pragma once

#include <array>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string_view>

namespace troupe::http {

inline constexpr std::size_t date_bytes = 29;

// "Sun, 06 Nov 1994 08:49:37 GMT". Years from 0 to 9999; what is before or behind is written as the
// first or the last second.
std::array<char, date_bytes> write_date(std::time_t time) noexcept;

// In any of the three forms that RFC 9110 (5.6.7) has: the one above, "Sunday, 06-Nov-94 08:49:37
// GMT" and "Sun Nov  6 08:49:37 1994". A year of two digits that would be more than 50 years after
// `now` is one of the century before.
std::optional<std::time_t> read_date(std::string_view text, std::time_t now) noexcept;

}  // namespace troupe::http
