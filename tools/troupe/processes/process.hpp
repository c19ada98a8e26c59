// process: what the kernel tells of a process, which the process itself cannot invent.
#pragma once

#include <sys/types.h>

#include <string>

namespace troupe_tool {

// The name of a user, or the number if there is no name for it.
std::string name_of_user(::uid_t user);

// How long the process has run; 0 if there is none of that number.
double uptime_ns_of(int pid);

// The program with its arguments, separated by spaces; empty if they cannot be read. A process can
// overwrite its arguments. At most 4 KiB are read.
std::string arguments_of(int pid);

}  // namespace troupe_tool
