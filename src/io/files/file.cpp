#include "troupe/io/file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/kernel/kernel.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/memory/block_pool.hpp"

namespace troupe {
namespace io {
namespace {

constexpr std::size_t text_max = 200;  // bytes of a path in the text of an error

// An operation that was cancelled is not a refusal of the system.
void check_at(const operation_suspension& wait, const char* name, const std::string& path) {
  if (wait.result < 0 && wait.result != -ECANCELED)
    throw io_error(literal::of_table(name), path, -wait.result);
  wait.check(name);
}

[[noreturn]] void refuse(const std::string& path, const char* why) {
  // A zero byte would end the text before the reason.
  throw option_error("troupe: file::open (" + path.substr(0, std::min(path.find('\0'), text_max)) +
                     "): " + why);
}

// O_NONBLOCK: opening a named pipe does not wait for its other end, and no thread can hang in it.
int flags_of(const std::string& path, const open_options& chosen) {
  if (!chosen.read && !chosen.write) refuse(path, "neither to read nor to write");
  if (!chosen.write && (chosen.create || chosen.truncate || chosen.append))
    refuse(path, "create, truncate and append need write");
  if (chosen.exclusive && !chosen.create) refuse(path, "exclusive needs create");
  if (path.find('\0') != std::string::npos) refuse(path, "a path has no zero in it");
  int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  flags |= !chosen.write ? O_RDONLY : chosen.read ? O_RDWR : O_WRONLY;
  if (chosen.create) flags |= O_CREAT;
  if (chosen.exclusive) flags |= O_EXCL;
  if (chosen.truncate) flags |= O_TRUNC;
  if (chosen.append) flags |= O_APPEND;
  return flags;
}

}  // namespace

open_file::~open_file() {
  if (fd >= 0) system_kernel().close(fd);
}

// If the coroutine was destroyed before it took the result, nothing else closes the file.
open_job::~open_job() {
  if (unclaimed_ != nullptr) unclaimed_->close_result();
}

descriptor& open_job::prepare(operation_suspension& wait) {
  wait.extra = flags_of(path_, options_);
  wait.data = reinterpret_cast<std::byte*>(path_.data());
  wait.bytes = options_.permissions;
  wait.result = -ECANCELED;  // the result if the operation never begins
  unclaimed_ = &wait;
  place_ = descriptor::borrow(AT_FDCWD);
  return place_;
}

file open_job::finish(operation_suspension& wait) {
  check_at(wait, "open", path_);
  auto opened =
      std::allocate_shared<open_file>(memory::block_allocator<open_file>(), -1, std::move(path_));
  opened->fd = wait.result;
  unclaimed_ = nullptr;
  return file(std::move(opened));
}

}  // namespace io

file file::adopt(int fd, std::string path) {
  try {
    return file(std::allocate_shared<io::open_file>(memory::block_allocator<io::open_file>(), fd,
                                                    std::move(path)));
  } catch (...) {
    io::system_kernel().close(fd);
    throw;
  }
}

namespace io {

descriptor& file_job::prepare_at(operation_suspension& wait, std::int64_t offset) {
  if (file_ == nullptr)
    throw usage_error("troupe: file: it is not open: it was closed or moved from");
  wait.offset = offset;
  place_ = descriptor::borrow(file_->fd);
  return place_;
}

void file_job::check(const operation_suspension& wait, const char* name) const {
  check_at(wait, name, file_->path);
}

descriptor& file_read_job::prepare(operation_suspension& wait) {
  wait.data = buffer_.data();
  wait.bytes = buffer_.size();
  wait.whole = whole_;
  return prepare_at(wait, offset_);
}

// Bytes that came are returned, whatever happened after them.
std::size_t file_read_job::finish(operation_suspension& wait) const {
  if (whole_ || wait.done == 0) check(wait, whole_ ? "read_exact" : "read");
  if (whole_ && wait.done < buffer_.size()) throw end_of_file("read_exact", file_->path, wait.done);
  return wait.done;
}

descriptor& file_write_job::prepare(operation_suspension& wait) {
  if (owns_) bytes_ = owned_;  // `owned_` has reached its final address by now
  // The system does not write to these bytes.
  wait.data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes_.data()));
  wait.bytes = bytes_.size();
  wait.whole = whole_;
  return prepare_at(wait, offset_);
}

std::size_t file_write_job::finish(operation_suspension& wait) const {
  if (whole_ || wait.done == 0) check(wait, whole_ ? "write_all" : "write");
  if (whole_ && wait.done < wait.bytes) throw io_error("write_all", file_->path, ENOSPC);
  return wait.done;
}

descriptor& sync_job::prepare(operation_suspension& wait) {
  wait.extra = data_alone_ ? 1 : 0;
  return prepare_at(wait, 0);
}

descriptor& status_job::prepare(operation_suspension& wait) {
  wait.data = reinterpret_cast<std::byte*>(&found_);
  return prepare_at(wait, 0);
}

file_status status_job::finish(operation_suspension& wait) const {
  check(wait, "status");
  const std::chrono::nanoseconds since_epoch = std::chrono::seconds(found_.stx_mtime.tv_sec) +
                                               std::chrono::nanoseconds(found_.stx_mtime.tv_nsec);
  file_status known;
  known.bytes = found_.stx_size;
  known.modified = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch));
  known.is_regular = S_ISREG(found_.stx_mode);
  known.is_directory = S_ISDIR(found_.stx_mode);
  return known;
}

descriptor& close_job::prepare(operation_suspension& wait) {
  shared_ = file_ != nullptr && file_.use_count() > 1;  // the last owner closes the file
  wait.extra = shared_ ? 1 : 0;
  return prepare_at(wait, 0);
}

void close_job::finish(operation_suspension& wait) {
  // Whatever the system reports, the descriptor is closed, unless the system was not asked.
  if (wait.result != -ECANCELED && !shared_) file_->fd = -1;
  check(wait, "close");
}

}  // namespace io

const std::string& file::path() const {
  if (open_ == nullptr) throw usage_error("troupe: file::path: it is not open");
  return open_->path;
}

}  // namespace troupe
