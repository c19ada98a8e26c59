// flame_graph: a picture of many stacks: each function is as wide as its share, above its caller.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace troupe_tool {

// A function with those that it called, by their names.
struct flame {
  std::uint64_t ns = 0;  // of it and of all above it
  std::map<std::string, flame> above{};
};

// As one SVG file of ASCII characters, which loads nothing and runs nothing. A pointer over a
// function shows its whole name and share. The title stands above.
std::string flame_graph(const flame& root, std::string_view title);

}  // namespace troupe_tool
