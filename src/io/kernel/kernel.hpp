// kernel: a table of the system calls that I/O makes. There is one for the real calls, one for a
// simulated network, and tests have one whose calls fail by a script.
//
// Each function returns the result of the system call, or -errno. Only wait_events() and the
// functions for files block.
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

  // The least descriptor of a simulated network; greater than any real one.
  static constexpr int first_simulated = 1 << 24;

  // This table makes the real calls, and no test sees or changes them.
  const bool is_real;

  // Descriptors made by these functions do not block, and are closed on exec.
  virtual int socket(int domain, int type, int protocol) noexcept = 0;
  virtual int bind(int fd, const sockaddr* to, socklen_t bytes) noexcept = 0;
  virtual int listen(int fd, int backlog) noexcept = 0;
  virtual int accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept = 0;
  // To an address of the family AF_UNSPEC: resets the connection of the socket.
  virtual int connect(int fd, const sockaddr* to, socklen_t bytes) noexcept = 0;
  virtual int shutdown(int fd, int how) noexcept = 0;
  virtual int close(int fd) noexcept = 0;

  // With `peer`: returns the full length of the datagram, even if `data` is too small for it.
  virtual std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                                 socklen_t* peer_bytes) noexcept = 0;
  virtual std::ptrdiff_t send(int fd, const void* data, std::size_t bytes, const sockaddr* to,
                              socklen_t to_bytes) noexcept = 0;
  virtual std::ptrdiff_t read(int fd, void* data, std::size_t bytes) noexcept = 0;
  virtual std::ptrdiff_t write(int fd, const void* data, std::size_t bytes) noexcept = 0;

  // For files. `at_once`: returns -EAGAIN where the call would wait for the disk. Without it, these
  // calls may block. An offset of -1 means the file's own position.
  virtual int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept = 0;
  virtual std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                                 bool at_once) noexcept = 0;
  virtual std::ptrdiff_t write_at(int fd, const void* data, std::size_t bytes,
                                  std::int64_t offset) noexcept = 0;
  virtual int sync(int fd, bool data_alone) noexcept = 0;
  virtual int status(int fd, struct statx* to) noexcept = 0;
  // Sends from a file to a stream. May wait for the disk.
  virtual std::ptrdiff_t send_file(int to, int from, std::int64_t offset,
                                   std::size_t bytes) noexcept = 0;

  // For SO_LINGER, whose value is no number, `value` is a number of seconds, or off where it is
  // negative. With 0 the end of the socket is a reset, even the end of the process.
  virtual int set_option(int fd, int level, int name, int value) noexcept = 0;
  // Returns SO_ERROR as a positive number.
  virtual int pending_error(int fd) noexcept = 0;
  virtual int local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept = 0;
  virtual int peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept = 0;
  // Returns the subset of `events` that poll(2) finds now; 0 when it is empty.
  virtual int poll(int fd, short events) noexcept = 0;

  // A set of descriptors with edge-triggered reports (epoll), and a bell, which interrupts a thread
  // that waits for the set.
  virtual int make_set() noexcept = 0;
  virtual int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept = 0;
  virtual int remove(int set, int fd) noexcept = 0;
  virtual int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept = 0;
  // Waits until one of several sets, or a bell, has something (poll(2)); -ENOSYS in a simulation.
  virtual int wait_for_sets(pollfd* sets, unsigned number, int timeout_ms) noexcept;
  virtual int duplicate(int fd) noexcept = 0;
  virtual int make_bell() noexcept = 0;
  virtual void ring(int bell) noexcept = 0;

  // For io_uring, like io_uring_queue_init_params and io_uring_enter2; -ENOSYS where this library
  // was built without io_uring.
  virtual int make_ring(unsigned entries, io_uring* ring, io_uring_params* how) noexcept;
  virtual int enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                         std::size_t bytes) noexcept;
  // For a test's script: whether the script sees the entries of a ring and may change them, and the
  // result that an entry gets.
  virtual bool scripts_rings() const noexcept { return false; }
  virtual void asked(io_uring_sqe&) noexcept {}
  virtual int came_to(std::uint64_t /*mark*/, int result) noexcept { return result; }

  // For a simulation: it has ended. Descriptors may still be closed.
  virtual void end_simulation() noexcept {}
  // For a simulation: when the next event happens by itself.
  virtual std::optional<std::int64_t> next_ns() noexcept { return std::nullopt; }
  // In a simulation: whether the descriptor is none of its own.
  virtual bool is_outside(int) const noexcept { return false; }
};

// The table that is used outside of simulations: the real one, or the one that a test has set.
kernel& system_kernel() noexcept;
kernel& real_kernel() noexcept;

// For tests: replaces system_kernel() while the object lives. No runtime may use I/O when it is
// created or destroyed.
class replaced_kernel {
 public:
  explicit replaced_kernel(kernel& by) noexcept;
  ~replaced_kernel();
  replaced_kernel(const replaced_kernel&) = delete;
  replaced_kernel& operator=(const replaced_kernel&) = delete;
};

}  // namespace troupe::io
