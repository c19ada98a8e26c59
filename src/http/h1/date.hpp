// date: writes and reads times in the HTTP formats.
// Rejected: strftime and strptime, because they follow the locale that the program has chosen.
#pragma once

#include <array>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string_view>

namespace troupe::http {

inline constexpr std::size_t date_bytes = 29;

// Returns, for example, "Sun, 06 Nov 1994 08:49:37 GMT". Handles the years 0 to 9999; a time
// outside of them is written as the first or the last second.
std::array<char, date_bytes> write_date(std::time_t time) noexcept;

// Reads any of the three forms of RFC 9110, 5.6.7: the one above, "Sunday, 06-Nov-94 08:49:37 GMT"
// and "Sun Nov  6 08:49:37 1994". If a year of two digits would be more than 50 years after `now`,
// it is taken as a year of the century before.
std::optional<std::time_t> read_date(std::string_view text, std::time_t now) noexcept;

// Returns "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", for now. Each thread makes the line once a
// second. Call it in turns only, and do not keep the view over a suspension.
std::string_view date_line();

}  // namespace troupe::http
