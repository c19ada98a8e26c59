// variables: the environment by which listening sockets are passed to a process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::service {

// The sockets have the numbers from this one on.
inline constexpr int first_socket = 3;
// More are malformed: no process has so many descriptors.
inline constexpr int sockets_most = 65'536;

// The data that a predecessor passes beside systemd's variables, in TROUPE_PREDECESSOR: its process
// number, the number of the descriptor on which it waits until this process is ready, and for each
// socket whether its file is removed at the end: "4711 5 01".
struct predecessor {
  pid_t id = 0;
  int ready_fd = -1;
  std::string files;

  std::string to_string() const;
  // Empty if the text is malformed.
  static std::optional<predecessor> parse(std::string_view text);
};

// The variables; null if they are not set.
struct variables {
  const char* fds = nullptr;          // LISTEN_FDS
  const char* pid = nullptr;          // LISTEN_PID
  const char* names = nullptr;        // LISTEN_FDNAMES
  const char* predecessor = nullptr;  // TROUPE_PREDECESSOR
};

struct passed {
  std::vector<std::string> names;  // one for each socket
  std::optional<predecessor> from;
};

// The sockets passed to the process `own`, whose parent is `parent`. Empty if the variables are not
// set, or are meant for another process. Throws option_error if they are malformed. Pure.
std::optional<passed> read_variables(const variables& variables, pid_t own, pid_t parent);

}  // namespace troupe::service
