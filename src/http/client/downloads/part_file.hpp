// part_file: the part of a download on the disk, and of which version it is. All functions block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "troupe/io/file.hpp"

namespace troupe::http {

struct part_version {
  std::string url;        // that was asked for
  std::string validator;  // for If-Range; "": none
  std::optional<std::uint64_t> total;
};

struct part_file {
  file opened;              // and locked; not open: another download has it
  std::uint64_t bytes = 0;  // that may be kept
  part_version version;
};

// Opens the part of `path` or makes an empty one. Throws io_error.
part_file open_part(const std::string& path, const std::string& url);
// The part has 0 bytes of this version from now on. Whoever calls it on another thread keeps the
// file open until it has returned.
void restart_part(int fd, const std::string& path, const part_version& version);
// Another download may take the part, though the file is open here.
void unlock_part(int fd) noexcept;
// Gives the part its name.
void finish_part(int fd, const std::string& path, bool sync);

}  // namespace troupe::http
