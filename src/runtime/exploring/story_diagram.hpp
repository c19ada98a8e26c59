// story_diagram: a story as a sequence diagram: a column for each actor, a row for each handler,
// and an arrow from the handler that sent the message.
//
// Both forms are ASCII, and show any other character as '?'. Thread: any.
#pragma once

#include <string>

#include "runtime/exploring/story.hpp"

namespace troupe {

// One SVG file, which loads nothing and runs nothing. The failure's first line is its title. A
// pointer over a handler shows its line of the text.
std::string svg_diagram(const told_story& told, const std::string& failure);

// For a terminal: an arrow lies in the row of the handler that it starts.
std::string ascii_diagram(const told_story& told, const std::string& failure);

}  // namespace troupe
