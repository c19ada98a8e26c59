// telling: the story of a program's failure under a schedule, of executions in processes of their
// own.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "exploring/child.hpp"
#include "runtime/exploring/story.hpp"
#include "sched/exploring/schedule_file.hpp"

namespace troupe_tool {

// Runs the program by the plan, and without its holds. The files have names that begin with
// `stem`. Throws failure if the program cannot be started.
troupe::told_story story_of(const std::vector<std::string>& program, const std::string& stem,
                            const troupe::sched::exploring::kept_schedule& plan,
                            const std::string& failed, std::chrono::milliseconds limit);

// Writes a sequence diagram: SVG if the file's name ends in .svg, otherwise a text. Throws failure.
void write_diagram(const std::string& file, const troupe::told_story& told,
                   const std::string& failed);

}  // namespace troupe_tool
