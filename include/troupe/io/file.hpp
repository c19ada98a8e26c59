// file: opens, reads, writes and closes files without blocking a thread of the pool on a disk.
#pragma once

#include "troupe/base/language.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/io/operations/suspension.hpp"

namespace troupe {

class file;
class stream;

// Options of file::open(). Each descriptor is opened with close-on-exec.
//
// Example:
//     troupe::open_options fresh;
//     fresh.write = fresh.create = fresh.truncate = true;
struct open_options {
  bool read = true;
  bool write = false;
  // Creates the file if it does not exist. Needs `write`.
  bool create = false;
  // The file must not exist yet. Needs `create`.
  bool exclusive = false;
  // Removes the file's former content. Needs `write`.
  bool truncate = false;
  // Each write goes to the end of the file at the time of the write. Needs `write`.
  bool append = false;
  // Permissions of a created file, less the process' umask.
  unsigned permissions = 0666;
};

// The properties of an open file.
struct file_status {
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point modified;
  bool is_regular = false;  // neither a directory, nor a device, nor a pipe
  bool is_directory = false;
};

namespace io {

// An open descriptor, shared by the file and its operations; closed when the last of them ends.
struct open_file {
  open_file(int number, std::string name) noexcept : fd(number), path(std::move(name)) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file();
  int fd;
  const std::string path;
};
using open_file_ptr = std::shared_ptr<open_file>;

class open_job {
 public:
  using result = file;
  static constexpr action opcode = action::open;
  open_job(std::string_view path, const open_options& options) : path_(path), options_(options) {}
  open_job(open_job&& other) noexcept : path_(std::move(other.path_)), options_(other.options_) {}
  ~open_job();
  descriptor& prepare(operation_suspension& wait);
  file finish(operation_suspension& wait);

 private:
  std::string path_;
  open_options options_;
  descriptor place_;
  operation_suspension* unclaimed_ = nullptr;  // as accept_base::unclaimed_
};

// The common part of all operations of an open file.
class file_job {
 public:
  explicit file_job(open_file_ptr file) noexcept : file_(std::move(file)) {}

 protected:
  descriptor& prepare_at(operation_suspension& wait, std::int64_t offset);
  void check(const operation_suspension& wait, const char* name) const;
  open_file_ptr file_;

 private:
  descriptor place_;  // each operation has its own, since any number may be under way
};

class file_read_job : public file_job {
 public:
  using result = std::size_t;
  static constexpr action opcode = action::read_at;
  file_read_job(open_file_ptr from, std::int64_t offset, std::span<std::byte> buffer,
                bool whole) noexcept
      : file_job(std::move(from)), buffer_(buffer), offset_(offset), whole_(whole) {}
  descriptor& prepare(operation_suspension& wait);
  std::size_t finish(operation_suspension& wait) const;

 private:
  std::span<std::byte> buffer_;
  std::int64_t offset_;
  bool whole_;
};

class file_write_job : public file_job {
 public:
  using result = std::size_t;
  static constexpr action opcode = action::write_at;
  file_write_job(open_file_ptr to, std::int64_t offset, std::string_view bytes, bool whole) noexcept
      : file_job(std::move(to)), bytes_(bytes), offset_(offset), whole_(whole) {}
  // Owns the bytes.
  file_write_job(open_file_ptr to, std::int64_t offset, std::string&& bytes, bool whole) noexcept
      : file_job(std::move(to)),
        owned_(std::move(bytes)),
        offset_(offset),
        whole_(whole),
        owns_(true) {}
  descriptor& prepare(operation_suspension& wait);
  std::size_t finish(operation_suspension& wait) const;

 private:
  std::string owned_;
  std::string_view bytes_;
  std::int64_t offset_;
  bool whole_, owns_ = false;
};

class sync_job : public file_job {
 public:
  using result = void;
  static constexpr action opcode = action::sync;
  sync_job(open_file_ptr file, bool data_alone) noexcept
      : file_job(std::move(file)), data_alone_(data_alone) {}
  descriptor& prepare(operation_suspension& wait);
  void finish(operation_suspension& wait) const {
    check(wait, data_alone_ ? "fdatasync" : "fsync");
  }

 private:
  bool data_alone_;
};

class status_job : public file_job {
 public:
  using result = file_status;
  static constexpr action opcode = action::status;
  using file_job::file_job;
  descriptor& prepare(operation_suspension& wait);
  file_status finish(operation_suspension& wait) const;

 private:
  struct statx found_ {};
};

class size_job : public status_job {
 public:
  using result = std::uint64_t;
  using status_job::status_job;
  std::uint64_t finish(operation_suspension& wait) const { return status_job::finish(wait).bytes; }
};

class close_job : public file_job {
 public:
  using result = void;
  static constexpr action opcode = action::close;
  using file_job::file_job;
  descriptor& prepare(operation_suspension& wait);
  void finish(operation_suspension& wait);

 private:
  bool shared_ = false;
};

}  // namespace io

// An open file. Move-only. A directory can be opened too, for status().
//
// The destructor closes the file. On some file systems this may block the thread for a moment, and
// it reports no error; use close() to learn of errors. For a file without positions (a terminal, a
// named pipe) use pipe_stream: if such a file has no data, read() waits or fails with
// resource_unavailable_try_again, depending on the backend.
//
// Use: co_await the return values of these methods, at once, in a handler or a task, optionally
// with .timeout(span) and .stop(token). Errors: they throw io_error, which names the path;
// timed_out; cancelled. Data in the system's memory is read at once; otherwise io_uring reads it,
// or a thread of the blocking pool (runtime_options::blocking_threads). A read that has begun on
// such a thread cannot be interrupted: a timeout or a stop then waits until the read has ended, and
// returns its result. Therefore no operation touches a buffer after its end, and a file that is
// opened at the moment of a timeout is returned or closed. Under the simulated policy the files are
// the real ones; the seed decides which operations wait, for how much virtual time, and which are
// done in parts.
//
// Limits: any number of operations may be under way at the same time, except for those without an
// offset: these use the file's position, and run one after the other. The file stays open until all
// have ended. Cost: one system call and no allocation for an operation that is done at once; about
// 20 us for one on a thread of the blocking pool.
//
// Example (declarations):
//     troupe::task<> put(std::string line) {
//       troupe::open_options end;
//       end.write = end.create = end.append = true;
//       troupe::file log = co_await troupe::file::open("log.txt", end);
//       co_await log.write_all(std::move(line));
//       co_await log.fsync();
//       co_await log.close();
//     }
//     troupe::task<std::string> first_line(std::string path) {
//       troupe::file text = co_await troupe::file::open(path);
//       std::array<char, 200> buffer;
//       const std::size_t bytes = co_await text.read_at(0, buffer);
//       const std::string_view all(buffer.data(), bytes);
//       co_return std::string(all.substr(0, all.find('\n')));
//     }
class file {
 public:
  file() = default;  // not open

  // Opens the file at `path`. Also throws option_error for options that contradict each other, and
  // for a path that contains a zero byte.
  static io::awaitable<io::open_job> open(std::string_view path, const open_options& options = {}) {
    return io::awaitable<io::open_job>(std::in_place, path, options);
  }

  // Takes ownership of a descriptor that is already open. `path` is only used in the texts of
  // errors. Throws std::bad_alloc, and has then closed the descriptor.
  static file adopt(int fd, std::string path);
  // Another handle of the same open file; both use the same position. The file stays open until the
  // last handle is destroyed.
  file share() const noexcept { return file(open_); }

  // Reads from byte `offset` on, at most as many bytes as the buffer holds. Returns the number of
  // bytes: at least 1, perhaps fewer than the file has; 0 at the end of the file.
  auto read_at(std::uint64_t offset, std::span<std::byte> to) noexcept {
    return reads(checked_offset(offset), to, false);
  }
  auto read_at(std::uint64_t offset, std::span<char> to) noexcept {
    return reads(checked_offset(offset), std::as_writable_bytes(to), false);
  }
  // Fills the whole buffer. Throws end_of_file if the file has fewer bytes.
  auto read_exact_at(std::uint64_t offset, std::span<std::byte> to) noexcept {
    return reads(checked_offset(offset), to, true);
  }
  auto read_exact_at(std::uint64_t offset, std::span<char> to) noexcept {
    return reads(checked_offset(offset), std::as_writable_bytes(to), true);
  }
  // The same from the file's position, where the last read() or write() without an offset ended.
  auto read(std::span<std::byte> to) noexcept { return reads(own_position, to, false); }
  auto read(std::span<char> to) noexcept {
    return reads(own_position, std::as_writable_bytes(to), false);
  }
  auto read_exact(std::span<std::byte> to) noexcept { return reads(own_position, to, true); }
  auto read_exact(std::span<char> to) noexcept {
    return reads(own_position, std::as_writable_bytes(to), true);
  }

  // Writes the bytes. Returns how many it wrote: fewer than all only if the disk is full or the
  // call was interrupted.
  auto write_at(std::uint64_t offset, std::string_view bytes) noexcept {
    return writes(checked_offset(offset), bytes, false);
  }
  auto write_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    return writes(checked_offset(offset), text(bytes), false);
  }
  auto write(std::string_view bytes) noexcept { return writes(own_position, bytes, false); }
  auto write(std::span<const std::byte> bytes) noexcept {
    return writes(own_position, text(bytes), false);
  }
  // Writes all bytes. A string that is moved in is kept until the operation has ended; the caller
  // must keep other bytes until then.
  auto write_all_at(std::uint64_t offset, std::string_view bytes) noexcept {
    return writes(checked_offset(offset), bytes, true);
  }
  auto write_all_at(std::uint64_t offset, const char* bytes) noexcept {
    return writes(checked_offset(offset), std::string_view(bytes), true);
  }
  auto write_all_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    return writes(checked_offset(offset), text(bytes), true);
  }
  auto write_all_at(std::uint64_t offset, std::string&& bytes) noexcept {
    return writes(checked_offset(offset), std::move(bytes), true);
  }
  auto write_all(std::string_view bytes) noexcept { return writes(own_position, bytes, true); }
  auto write_all(const char* bytes) noexcept {
    return writes(own_position, std::string_view(bytes), true);
  }
  auto write_all(std::span<const std::byte> bytes) noexcept {
    return writes(own_position, text(bytes), true);
  }
  auto write_all(std::string&& bytes) noexcept {
    return writes(own_position, std::move(bytes), true);
  }

  // Completes when the written data is on the disk. fdatasync() writes no property of the file
  // except for its size.
  io::awaitable<io::sync_job> fsync() noexcept {
    return io::awaitable<io::sync_job>(std::in_place, open_, false);
  }
  io::awaitable<io::sync_job> fdatasync() noexcept {
    return io::awaitable<io::sync_job>(std::in_place, open_, true);
  }

  // The properties that the system has now; for a file on another machine they may be a moment old.
  // Never waits.
  io::awaitable<io::status_job> status() noexcept {
    return io::awaitable<io::status_job>(std::in_place, open_);
  }
  io::awaitable<io::size_job> size() noexcept {
    return io::awaitable<io::size_job>(std::in_place, open_);
  }

  // Closes the file. When co_await returns or throws, the file is no longer open; an io_error means
  // that some of its data was lost. If the operation is ended early, or while other operations are
  // under way, the file is closed as by its destructor.
  io::awaitable<io::close_job> close() noexcept {
    return io::awaitable<io::close_job>(std::in_place, std::move(open_));
  }

  bool is_open() const noexcept { return open_ != nullptr; }
  // The path that was passed to open().
  const std::string& path() const;
  // The descriptor, for direct system calls; this file still owns it. -1 if the file is not open.
  int fd() const noexcept { return open_ == nullptr ? -1 : open_->fd; }

 private:
  friend io::open_job;
  friend stream;
  static constexpr auto own_position = static_cast<std::uint64_t>(io::own_position);
  // The system refuses such large offsets. The largest one is excluded because it means the file's
  // position.
  static constexpr std::uint64_t checked_offset(std::uint64_t offset) noexcept {
    return offset == own_position ? own_position - 1 : offset;
  }
  explicit file(io::open_file_ptr open) noexcept : open_(std::move(open)) {}
  static std::string_view text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  io::awaitable<io::file_read_job> reads(std::uint64_t offset, std::span<std::byte> to,
                                         bool whole) noexcept {
    return io::awaitable<io::file_read_job>(std::in_place, open_, static_cast<std::int64_t>(offset),
                                            to, whole);
  }
  template <class Bytes>
  io::awaitable<io::file_write_job> writes(std::uint64_t offset, Bytes&& bytes,
                                           bool whole) noexcept {
    return io::awaitable<io::file_write_job>(
        std::in_place, open_, static_cast<std::int64_t>(offset), std::forward<Bytes>(bytes), whole);
  }
  io::open_file_ptr open_;
};

}  // namespace troupe
