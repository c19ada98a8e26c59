#include "http/routing/reopened_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

namespace troupe::http {

bool reopened_file::identity::read(int fd, identity& to) noexcept {
  struct stat all {};
  if (::fstat(fd, &all) != 0) return false;
  to = {all.st_dev, all.st_ino, all.st_size, all.st_mtim};
  return true;
}

file reopened_file::open_at(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  return fd < 0 ? file() : file::adopt(fd, std::string());
}

// The kernel returns the present name of the file, with the links on the way there resolved.
void reopened_file::rest() {
  if (!may_close_ || !is_open()) return;
  const std::string link = "/proc/self/fd/" + std::to_string(open_.fd());
  std::array<char, PATH_MAX> name;
  const ssize_t bytes = ::readlink(link.c_str(), name.data(), name.size());
  may_close_ = bytes > 0 && static_cast<std::size_t>(bytes) < name.size() &&
               identity::read(open_.fd(), same_);
  if (!may_close_) return;
  path_.assign(name.data(), static_cast<std::size_t>(bytes));
  struct stat named {};
  may_close_ = ::lstat(path_.c_str(), &named) == 0 && named.st_dev == same_.device &&
               named.st_ino == same_.number;
  if (may_close_) open_ = file();
}

bool reopened_file::open() {
  if (is_open()) return true;
  file again = open_at(path_);
  identity now;
  if (again.fd() < 0 || !identity::read(again.fd(), now) || !(now == same_)) return false;
  open_ = std::move(again);
  return true;
}

}  // namespace troupe::http
