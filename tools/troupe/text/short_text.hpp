// short_text: counts, times and lines that fit into tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe_tool {

// At most five characters: 999, 12.3k, 4.5M.
std::string short_count(double n);
// A time as long as a message takes: 12.3us, 4.5ms; "-" if it is not known.
std::string short_time(double ns);
// A time as long as a program runs, in its two largest units: 12s, 3m04s, 5h07m, 12d03h.
std::string long_time(double ns);

// At most so many bytes of a line; characters of UTF-8 stay whole.
std::string cut(std::string line, std::size_t width);

// The text in lines of at most so many bytes, which end between words if a word is not longer.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace troupe_tool
