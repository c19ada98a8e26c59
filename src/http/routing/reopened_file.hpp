// reopened_file: a file of a folder that is being sent, and is open only while bytes of it can be
// sent. A client that takes nothing of its answers holds no descriptors.
//
// A file that was replaced in the meantime is another file: it cannot be opened again, and the
// answer stays incomplete. A file that has no name any more stays open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#include "troupe/io/file.hpp"

namespace troupe::http {

// Thread: one at a time.
class reopened_file {
 public:
  // `may_close`: no other party has a handle of the file.
  reopened_file(file open, bool may_close) noexcept
      : open_(std::move(open)), may_close_(may_close) {}

  bool is_open() const noexcept { return open_.fd() >= 0; }
  // Closes the file, if it can be opened again.
  void rest();
  // Opens it if it is not open. Returns false if it is not the same file any more.
  bool open();
  file& get() noexcept { return open_; }

 private:
  struct identity {
    dev_t device = 0;
    ino_t number = 0;
    off_t bytes = 0;
    timespec modified{};
    static bool read(int fd, identity& to) noexcept;
    bool operator==(const identity& other) const noexcept {
      return device == other.device && number == other.number && bytes == other.bytes &&
             modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
    }
  };
  static file open_at(const std::string& path);

  file open_;
  bool may_close_;
  std::string path_;
  identity same_;
};

}  // namespace troupe::http
