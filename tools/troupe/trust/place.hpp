// place: where the socket of a program is, if it can be believed. Anyone may make files in /tmp,
// and root may run the tool: a folder counts only if it belongs to the user of the process that is
// to be asked, and if nobody else may enter it (src/observe/sockets/observation_socket.hpp).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
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

// A socket whose process has ended.
struct dead_socket {
  int pid;
  ::uid_t owner;  // the folder's
  std::string folder;
};
struct found_places {
  std::vector<program_place> programs;  // by number
  std::vector<dead_socket> dead;
};

// The sockets of this user; for root, of all users. Folders that cannot be believed are skipped,
// and reported on standard error.
found_places find_places();

// Removes those of them at which nothing listens, if their folder is still its owner's alone.
// Returns how many it has removed.
std::size_t remove_sockets(std::span<const dead_socket> dead);

}  // namespace troupe_tool
