// manual: the page troupe(1), made from the help of the commands.
#pragma once

#include <string>

#include "command_line/command_line.hpp"

namespace troupe_tool {

// In the format of man(7).
std::string manual_of(const command_line& line);

}  // namespace troupe_tool
