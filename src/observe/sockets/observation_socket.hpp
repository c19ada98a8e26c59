// observation_socket: where the socket of an observed program is, and whom its two ends trust.
//
// The program and the tool `troupe` both keep to these rules (docs/protocols/side_channels.md):
//   O1  The socket is PID.sock in a folder that belongs to the program's user, and that no other
//       user may enter. The program makes the folder so, and both ends check it before they use it:
//       anyone may make /tmp/troupe-UID.
//   O2  Each end asks the kernel who is at the other end (SO_PEERCRED). The program answers its own
//       user and root; the tool asks a program of the user to whom the folder belongs.
// Thread: any.
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>

namespace troupe::observe {

// Why an observation socket cannot be used.
struct socket_fault {
  std::string problem;
  int error = 0;            // errno, or 0
  const char* remedy = "";  // an action for the user
};

// The user whose files and sockets this process makes.
::uid_t own_user() noexcept;

// The folder of that user's sockets: in `runtime_folder`, the value of XDG_RUNTIME_DIR, or in /tmp
// if that is null or empty.
std::string socket_folder(const char* runtime_folder, ::uid_t user);

// nullopt if the folder fulfils O1; otherwise its fault.
std::optional<socket_fault> check_folder(const std::string& folder, ::uid_t user);

// Nothing if the path fits into a socket's address, which it fills in. Otherwise the fault.
std::optional<socket_fault> make_address(const std::string& path, ::sockaddr_un& address);

// Whether the process at the other end of a Unix socket is one of that user, or, if `or_root`, of
// root.
bool is_other_end_of(int socket, ::uid_t user, bool or_root) noexcept;

}  // namespace troupe::observe
