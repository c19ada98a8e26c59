// nearest: which of some names the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe_tool {

// The name that differs from `word` in the fewest characters; empty if all differ in more than a
// third of them.
std::string nearest_of(std::string_view word, std::span<const std::string> names);

// " (did you mean X?)", or nothing if no name is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace troupe_tool
