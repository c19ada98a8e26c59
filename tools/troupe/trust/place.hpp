// place: where the socket of a program is, if it can be believed. Anyone may make files in /tmp,
// and root may run the tool: a folder counts only if it belongs to the user of the process that is
// to be asked, and if nobody else may enter it (src/observe/sockets/observation_socket.hpp).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe_tool {

struct program_place {
  int pid;
  ::uid_t user;  // the process's
  std::string socket;
};

// Throws failure if there is no such process, or no folder of its user has its socket.
program_place place_of(int pid);

// The sockets of this user's processes, by number; for root, of all users. Folders that cannot be
// believed are skipped, and reported on standard error.
std::vector<program_place> all_places();

}  // namespace troupe_tool
