// numbers: counts and times as short texts, for tables.
#pragma once

#include <string>

namespace troupe_tool {

// At most five characters: 999, 12.3k, 4.5M.
std::string short_count(double n);
// A time as long as a message takes: 12.3us, 4.5ms; "-" if it is not known.
std::string short_time(double ns);
// A time as long as a program runs, in its two largest units: 12s, 3m04s, 5h07m, 12d03h.
std::string long_time(double ns);

}  // namespace troupe_tool
