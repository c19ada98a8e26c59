// warning_texts: the words of which the sentences of warnings consist.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::observing {

// "5.2 ms", "12 s".
std::string time_text(std::int64_t ns);
// "1 call", "2 calls".
std::string counted(std::uint64_t number, const char* noun);

}  // namespace troupe::observing
