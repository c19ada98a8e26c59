// Files: opened, read, written and closed without a thread of the pool waiting for a disk.
#pragma once

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

// Of file::open(). Descriptors are closed on exec, always.
//
// Example:
//     troupe::open_options fresh;
//     fresh.write = fresh.create = fresh.truncate = true;
struct open_options {
  bool read = true;
  bool write = false;
  // Made when it is not there. Needs `write`.
  bool create = false;
  // It must not be there. Needs `create`.
  bool exclusive = false;
  // What it has is gone. Needs `write`.
  bool truncate = false;
  // Each write goes to the end, wherever that is then. Needs `write`.
  bool append = false;
  // Of a file that is made; the process' umask is taken from that.
  unsigned permissions = 0666;
};

// What is known of an open file.
struct file_status {
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point modified;
  bool is_regular = false;  // neither a folder, nor a device, nor a pipe
  bool is_directory = false;
};

namespace io {

// Open for as long as somebody has it: a file, or an operation of one.
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
  static constexpr action what = action::open;
  open_job(std::string_view path, const open_options& options) : path_(path), options_(options) {}
  open_job(open_job&& other) noexcept : path_(std::move(other.path_)), options_(other.options_) {}
  ~open_job();
  descriptor& prepare(operation_suspension& wait);
  file finish(operation_suspension& wait);

 private:
  std::string path_;
  open_options options_;
  descriptor place_;
  operation_suspension* unclaimed_ = nullptr;  // what it came to is nobody's yet
};

// What operations of an open file have in common.
class file_job {
 public:
  explicit file_job(open_file_ptr of) noexcept : of_(std::move(of)) {}

 protected:
  descriptor& prepare_at(operation_suspension& wait, std::int64_t offset);
  void check(const operation_suspension& wait, const char* name) const;
  open_file_ptr of_;

 private:
  descriptor place_;  // its own: any number may be under way
};

class file_read_job : public file_job {
 public:
  using result = std::size_t;
  static constexpr action what = action::read_at;
  file_read_job(open_file_ptr from, std::int64_t offset, std::span<std::byte> to,
                bool whole) noexcept
      : file_job(std::move(from)), to_(to), offset_(offset), whole_(whole) {}
  descriptor& prepare(operation_suspension& wait);
  std::size_t finish(operation_suspension& wait) const;

 private:
  std::span<std::byte> to_;
  std::int64_t offset_;
  bool whole_;
};

class file_write_job : public file_job {
 public:
  using result = std::size_t;
  static constexpr action what = action::write_at;
  file_write_job(open_file_ptr to, std::int64_t offset, std::string_view bytes, bool whole) noexcept
      : file_job(std::move(to)), bytes_(bytes), offset_(offset), whole_(whole) {}
  // Owns them.
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
  static constexpr action what = action::sync;
  sync_job(open_file_ptr of, bool data_alone) noexcept
      : file_job(std::move(of)), data_alone_(data_alone) {}
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
  static constexpr action what = action::status;
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
  static constexpr action what = action::close;
  using file_job::file_job;
  descriptor& prepare(operation_suspension& wait);
  void finish(operation_suspension& wait);

 private:
  bool shared_ = false;
};

}  // namespace io

// An open file. Move-only; closed when it goes, which may hold its thread for a moment on some file
// systems, and tells of no error: for those there is close(). A folder can be opened to be looked
// at, by status(). For what has no positions (a terminal, a named pipe) use pipe_stream: here a
// read of it waits or fails with resource_unavailable_try_again, as the backend has it, when there
// is nothing.
//
// co_await what these methods return, at once, in a handler or a task, with .timeout(span) and
// .stop(token) if you like. They throw io_error, which names the path; timed_out; cancelled. What
// the system has in memory is read at once; else io_uring does it, or a thread of the side pool
// (runtime_options::blocking_threads). A read that has begun on such a thread cannot be
// interrupted: then a timeout or a stop waits until it has ended, and its result is given. So a
// buffer is never touched later, and a file that is opened just as a timeout comes is given or
// closed. Under the simulated policy files are the machine's own; the seed chooses what waits, for
// how much virtual time, and what comes in parts.
//
// Any number of operations may be under way at a time, but for those without an offset: these
// follow the file's position, one after the other. The file stays open until all have ended. Cost:
// one system call and no allocation when it is done at once, about 20 us by a thread of the side
// pool.
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

  // Throws also option_error for options that contradict each other, and for a path with a zero in
  // it.
  static io::awaitable<io::open_job> open(std::string_view path, const open_options& options = {}) {
    return io::awaitable<io::open_job>(std::in_place, path, options);
  }

  // A descriptor that is open already, and is this file's from now on; `path` is for the texts of
  // errors. Throws std::bad_alloc, and has closed it then.
  static file adopt(int fd, std::string path);
  // Another handle of the same open file, which stays open until the last one has gone. They have
  // one position.
  file share() const noexcept { return file(open_); }

  // From that byte on: as many as there are up to the size of the buffer, perhaps fewer, but one at
  // least; 0 at the end.
  auto read_at(std::uint64_t offset, std::span<std::byte> to) noexcept {
    return reads(checked_offset(offset), to, false);
  }
  auto read_at(std::uint64_t offset, std::span<char> to) noexcept {
    return reads(checked_offset(offset), std::as_writable_bytes(to), false);
  }
  // All of it. Throws end_of_file when there are fewer.
  auto read_exact_at(std::uint64_t offset, std::span<std::byte> to) noexcept {
    return reads(checked_offset(offset), to, true);
  }
  auto read_exact_at(std::uint64_t offset, std::span<char> to) noexcept {
    return reads(checked_offset(offset), std::as_writable_bytes(to), true);
  }
  // The same from where the last one of these, or of write(), ended.
  auto read(std::span<std::byte> to) noexcept { return reads(here, to, false); }
  auto read(std::span<char> to) noexcept { return reads(here, std::as_writable_bytes(to), false); }
  auto read_exact(std::span<std::byte> to) noexcept { return reads(here, to, true); }
  auto read_exact(std::span<char> to) noexcept {
    return reads(here, std::as_writable_bytes(to), true);
  }

  // How many were written: fewer only when there is no more room, or it was interrupted.
  auto write_at(std::uint64_t offset, std::string_view bytes) noexcept {
    return writes(checked_offset(offset), bytes, false);
  }
  auto write_at(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    return writes(checked_offset(offset), text(bytes), false);
  }
  auto write(std::string_view bytes) noexcept { return writes(here, bytes, false); }
  auto write(std::span<const std::byte> bytes) noexcept { return writes(here, text(bytes), false); }
  // All of it; a string that is moved in lives as long as it must.
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
  auto write_all(std::string_view bytes) noexcept { return writes(here, bytes, true); }
  auto write_all(const char* bytes) noexcept { return writes(here, std::string_view(bytes), true); }
  auto write_all(std::span<const std::byte> bytes) noexcept {
    return writes(here, text(bytes), true);
  }
  auto write_all(std::string&& bytes) noexcept { return writes(here, std::move(bytes), true); }

  // Until what was written is on the disk; fdatasync() without what is said of the file but its
  // size.
  io::awaitable<io::sync_job> fsync() noexcept {
    return io::awaitable<io::sync_job>(std::in_place, open_, false);
  }
  io::awaitable<io::sync_job> fdatasync() noexcept {
    return io::awaitable<io::sync_job>(std::in_place, open_, true);
  }

  // What the system knows by now; of a file on another machine that may be a moment old. Never
  // waits.
  io::awaitable<io::status_job> status() noexcept {
    return io::awaitable<io::status_job>(std::in_place, open_);
  }
  io::awaitable<io::size_job> size() noexcept {
    return io::awaitable<io::size_job>(std::in_place, open_);
  }

  // The file is not open any more when co_await gives or throws, and io_error says that something
  // of it was lost. Ended early, and where other operations are still under way, it is closed as by
  // its destructor.
  io::awaitable<io::close_job> close() noexcept {
    return io::awaitable<io::close_job>(std::in_place, std::move(open_));
  }

  bool is_open() const noexcept { return open_ != nullptr; }
  // As it was given to open().
  const std::string& path() const;
  // For the system's own calls; it stays this file's. -1 when it is not open.
  int fd() const noexcept { return open_ == nullptr ? -1 : open_->fd; }

 private:
  friend io::open_job;
  friend stream;
  static constexpr auto here = static_cast<std::uint64_t>(io::own_position);
  // The system refuses all that are so great; that one would else be the file's position.
  static constexpr std::uint64_t checked_offset(std::uint64_t offset) noexcept {
    return offset == here ? here - 1 : offset;
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
