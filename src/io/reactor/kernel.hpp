// kernel: the system calls that I/O makes, as a table: the real ones, a simulated network's, or
// ones that fail by a test's script.
//
// Each returns what the call does, or -errno. None blocks but wait_events, and those of files.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>

struct io_uring;
struct io_uring_params;
struct io_uring_sqe;

namespace troupe::io {

class kernel {
 public:
  explicit kernel(bool is_real_one = false) noexcept : is_real(is_real_one) {}
  kernel(const kernel&) = delete;
  kernel& operator=(const kernel&) = delete;
  virtual ~kernel() = default;

  // It does what the system does, and no test sees or changes that.
  const bool is_real;

  // Descriptors that it makes do not block and are closed on exec.
  virtual int socket(int domain, int type, int protocol) noexcept = 0;
  virtual int bind(int fd, const sockaddr* to, socklen_t bytes) noexcept = 0;
  virtual int listen(int fd, int backlog) noexcept = 0;
  virtual int accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept = 0;
  virtual int connect(int fd, const sockaddr* to, socklen_t bytes) noexcept = 0;
  virtual int shutdown(int fd, int how) noexcept = 0;
  virtual int close(int fd) noexcept = 0;

  // With `peer`, of a datagram: how long it is, be there room for it or not.
  virtual std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                                 socklen_t* peer_bytes) noexcept = 0;
  virtual std::ptrdiff_t send(int fd, const void* data, std::size_t bytes, const sockaddr* to,
                              socklen_t to_bytes) noexcept = 0;
  virtual std::ptrdiff_t read(int fd, void* data, std::size_t bytes) noexcept = 0;
  virtual std::ptrdiff_t write(int fd, const void* data, std::size_t bytes) noexcept = 0;

  // Of files. `at_once`: -EAGAIN where it would have to wait for the disk; without it these may
  // block. An offset of -1 is the file's own position.
  virtual int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept = 0;
  virtual std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                                 bool at_once) noexcept = 0;
  virtual std::ptrdiff_t write_at(int fd, const void* data, std::size_t bytes,
                                  std::int64_t offset) noexcept = 0;
  virtual int sync(int fd, bool data_alone) noexcept = 0;
  virtual int status(int fd, struct statx* to) noexcept = 0;
  // From a file to a stream. May wait for the disk.
  virtual std::ptrdiff_t send_file(int to, int from, std::int64_t offset,
                                   std::size_t bytes) noexcept = 0;

  virtual int set_option(int fd, int level, int name, int value) noexcept = 0;
  // SO_ERROR, as a positive number.
  virtual int pending_error(int fd) noexcept = 0;
  virtual int local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept = 0;
  virtual int peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept = 0;
  // What of `events` poll(2) finds now; 0 when nothing.
  virtual int look(int fd, short events) noexcept = 0;

  // A set of descriptors to be told of, edge-triggered (epoll), and a way to interrupt who waits
  // for it.
  virtual int make_set() noexcept = 0;
  virtual int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept = 0;
  virtual int remove(int set, int fd) noexcept = 0;
  virtual int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept = 0;
  virtual int duplicate(int fd) noexcept = 0;
  virtual int make_bell() noexcept = 0;
  virtual void ring(int bell) noexcept = 0;

  // Of io_uring, as io_uring_queue_init_params and io_uring_enter2; -ENOSYS where this library was
  // built without it.
  virtual int make_ring(unsigned entries, io_uring* made, io_uring_params* how) noexcept;
  virtual int enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                         std::size_t bytes) noexcept;
  // Of a test's script: whether it sees what a ring is asked for, and may change it, and what that
  // came to.
  virtual bool scripts_rings() const noexcept { return false; }
  virtual void asked(io_uring_sqe&) noexcept {}
  virtual int came_to(std::uint64_t /*mark*/, int result) noexcept { return result; }

  // Of a simulation: it has ended; descriptors may still be closed.
  virtual void end_simulation() noexcept {}
  // Of a simulation: when the next thing happens by itself.
  virtual std::optional<std::int64_t> next_ns() noexcept { return std::nullopt; }
};

// What is used outside of simulations: the real one, or what a test put in its place.
kernel& system_kernel() noexcept;
kernel& real_kernel() noexcept;

// For tests: replaces system_kernel() while it lives. No runtime may use I/O when it begins or
// ends.
class replaced_kernel {
 public:
  explicit replaced_kernel(kernel& by) noexcept;
  ~replaced_kernel();
  replaced_kernel(const replaced_kernel&) = delete;
  replaced_kernel& operator=(const replaced_kernel&) = delete;
};

}  // namespace troupe::io
