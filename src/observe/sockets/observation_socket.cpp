#include "observe/sockets/observation_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace troupe::observe {

::uid_t own_user() noexcept { return ::geteuid(); }

std::string socket_folder(const char* runtime_folder, ::uid_t user) {
  if (runtime_folder != nullptr && *runtime_folder != '\0')
    return std::string(runtime_folder) + "/troupe";
  return "/tmp/troupe-" + std::to_string(user);
}

std::optional<socket_fault> check_folder(const std::string& folder, ::uid_t user) {
  constexpr const char* remedy =
      "remove it, or set XDG_RUNTIME_DIR to a folder of the program's user";
  struct ::stat status = {};
  if (::lstat(folder.c_str(), &status) != 0)
    return socket_fault{folder, errno, "set XDG_RUNTIME_DIR to a folder of the program's user"};
  if (!S_ISDIR(status.st_mode)) return socket_fault{folder + " is no folder", 0, remedy};
  if (status.st_uid != user) {
    return socket_fault{folder + " belongs to user " + std::to_string(status.st_uid) + ", not to " +
                            std::to_string(user),
                        0, remedy};
  }
  if ((status.st_mode & 077) != 0) {
    return socket_fault{folder + " is open to other users", 0,
                        "give it the mode 0700, after a look at what is in it"};
  }
  return std::nullopt;
}

std::optional<socket_fault> make_address(const std::string& path, ::sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return socket_fault{path + " is too long for a socket, whose path has at most " +
                            std::to_string(sizeof address.sun_path - 1) + " bytes",
                        0, "set XDG_RUNTIME_DIR to a shorter path"};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return std::nullopt;
}

bool is_other_end_of(int socket, ::uid_t user, bool or_root) noexcept {
  ::ucred other = {};
  ::socklen_t size = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return false;
  return other.uid == user || (or_root && other.uid == 0);
}

}  // namespace troupe::observe
