// sections: what the help and the manual page say of the tool as a whole.
#pragma once

#include <span>
#include <string>

namespace troupe_tool {

struct section_line {
  const char *term, *text;
};
struct section {
  const char* title;
  std::span<const section_line> lines;
};

// Environment, files and exit status.
std::span<const section> sections();

// The same for the end of a help.
std::string text_of_sections();

}  // namespace troupe_tool
