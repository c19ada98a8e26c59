#include "http/client/downloads/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>

#include "troupe/io/error.hpp"

namespace troupe::http {

namespace {

constexpr std::string_view first_line = "troupe download 1";

std::string part_of(const std::string& path) { return path + ".part"; }
std::string info_of(const std::string& path) { return path + ".part.info"; }

class descriptor_holder {
 public:
  explicit descriptor_holder(int fd) noexcept : fd_(fd) {}
  descriptor_holder(const descriptor_holder&) = delete;
  descriptor_holder& operator=(const descriptor_holder&) = delete;
  ~descriptor_holder() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void fail(const char* operation, const std::string& path) {
  throw io_error(literal::of_table(operation), path, errno);
}

// A torn or foreign text gives a version without validator, so that nothing is kept.
part_version read_info(const std::string& path) {
  std::ifstream file(info_of(path), std::ios::binary);
  std::string first, total;
  part_version version;
  if (!std::getline(file, first) || first != first_line) return {};
  if (!std::getline(file, version.url) || !std::getline(file, version.validator)) return {};
  if (!std::getline(file, total) || file.eof()) return {};
  if (total == "-") return version;
  std::uint64_t bytes = 0;
  const auto [rest, bad] = std::from_chars(total.data(), total.data() + total.size(), bytes);
  if (bad != std::errc{} || rest != total.data() + total.size()) return {};
  version.total = bytes;
  return version;
}

void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const descriptor_holder opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) fail("fsync", folder);
}

}  // namespace

part_file open_part(const std::string& path, const std::string& url) {
  const std::string name = part_of(path);
  for (;;) {
    descriptor_holder opened(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (opened.get() < 0) fail("open", name);
    part_file part;
    if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return part;
      fail("flock", name);
    }
    // Another download may have given the part its name between open and flock.
    struct stat mine {
    }, named{};
    if (::fstat(opened.get(), &mine) != 0) fail("fstat", name);
    if (::stat(name.c_str(), &named) != 0 || named.st_ino != mine.st_ino ||
        named.st_dev != mine.st_dev)
      continue;
    part.version = read_info(path);
    const auto bytes = static_cast<std::uint64_t>(mine.st_size);
    if (part.version.url == url && !part.version.validator.empty() &&
        bytes <= part.version.total.value_or(UINT64_MAX))
      part.bytes = bytes;
    part.opened = file::adopt(opened.release(), name);
    return part;
  }
}

// The part is empty before the version changes, so that no crash leaves bytes of another version.
void restart_part(int fd, const std::string& path, const part_version& version) {
  if (::ftruncate(fd, 0) != 0) fail("ftruncate", part_of(path));
  std::ofstream out(info_of(path), std::ios::binary | std::ios::trunc);
  out << first_line << '\n' << version.url << '\n' << version.validator << '\n';
  out << (version.total ? std::to_string(*version.total) : "-") << '\n';
  out.close();
  if (!out) throw io_error("write", info_of(path), EIO);
}

void unlock_part(int fd) noexcept { ::flock(fd, LOCK_UN); }

void finish_part(int fd, const std::string& path, bool sync) {
  if (sync && ::fsync(fd) != 0) fail("fsync", part_of(path));
  if (::rename(part_of(path).c_str(), path.c_str()) != 0) fail("rename", path);
  ::unlink(info_of(path).c_str());
  if (sync) sync_folder_of(path);
}

}  // namespace troupe::http
