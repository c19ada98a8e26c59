// new_project: `troupe new`, which begins a project in a folder of its own.
#pragma once

#include <string>

namespace troupe_tool {

struct new_choices {
  std::string name;
  bool http = false, durable = false, cluster = false;  // at most one of them
};

// Makes the folder `name` with a program, its test and its build, and prints how to build it.
// Throws failure for a name that CMake could not build, and for a folder that has files: none is
// ever overwritten.
void make_project(const new_choices& chosen);

}  // namespace troupe_tool
