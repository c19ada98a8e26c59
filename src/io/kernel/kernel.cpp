#include "io/kernel/kernel.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#if TROUPE_HAS_LIBURING
#include <liburing.h>
#endif

#include <atomic>
#include <cerrno>

#include "io/kernel/message_calls.hpp"

namespace troupe::io {
namespace {

template <class Result>
Result checked(Result result) noexcept {
  return result < 0 ? static_cast<Result>(-errno) : result;
}

// True for the error of a system or a file system that lacks this call or flag.
bool lacks_this(std::ptrdiff_t result) noexcept {
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL;
}

class real final : public kernel {
 public:
  real() noexcept : kernel(true) {}

  int socket(int domain, int type, int protocol) noexcept override {
    return checked(::socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
  }
  int bind(int fd, const sockaddr* to, socklen_t bytes) noexcept override {
    return checked(::bind(fd, to, bytes));
  }
  int listen(int fd, int backlog) noexcept override { return checked(::listen(fd, backlog)); }
  int accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept override {
    return checked(::accept4(fd, peer, bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }
  int connect(int fd, const sockaddr* to, socklen_t bytes) noexcept override {
    return checked(::connect(fd, to, bytes));
  }
  int shutdown(int fd, int how) noexcept override { return checked(::shutdown(fd, how)); }
  int close(int fd) noexcept override { return checked(::close(fd)); }

  std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                         socklen_t* peer_bytes) noexcept override {
    return receive_from(fd, data, bytes, peer == nullptr ? 0 : MSG_TRUNC, peer, peer_bytes);
  }
  std::ptrdiff_t send(int fd, const void* data, std::size_t bytes, const sockaddr* to,
                      socklen_t to_bytes) noexcept override {
    return send_to(fd, data, bytes, MSG_NOSIGNAL, to, to_bytes);
  }
  std::ptrdiff_t read(int fd, void* data, std::size_t bytes) noexcept override {
    return checked(::read(fd, data, bytes));
  }
  std::ptrdiff_t write(int fd, const void* data, std::size_t bytes) noexcept override {
    return checked(::write(fd, data, bytes));
  }

  int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept override {
    if (!at_once) return checked(::open(path, flags, permissions));
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.mode = (flags & O_CREAT) != 0 ? permissions : 0;
    how.resolve = RESOLVE_CACHED;
    const auto result =
        static_cast<int>(checked(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how)));
    return lacks_this(result) || result == -EPERM ? -EAGAIN : result;
  }
  std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                         bool at_once) noexcept override {
    const iovec whole{data, bytes};
    const std::ptrdiff_t part = checked(::preadv2(fd, &whole, 1, offset, at_once ? RWF_NOWAIT : 0));
    return at_once && lacks_this(part) ? -EAGAIN : part;
  }
  std::ptrdiff_t write_at(int fd, const void* data, std::size_t bytes,
                          std::int64_t offset) noexcept override {
    const iovec whole{const_cast<void*>(data), bytes};
    return checked(::pwritev2(fd, &whole, 1, offset, 0));
  }
  int sync(int fd, bool data_alone) noexcept override {
    return checked(data_alone ? ::fdatasync(fd) : ::fsync(fd));
  }
  int status(int fd, struct statx* to) noexcept override {
    return checked(::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, to));
  }
  std::ptrdiff_t send_file(int to, int from, std::int64_t offset,
                           std::size_t bytes) noexcept override {
    off_t at = offset;
    return checked(::sendfile(to, from, &at, bytes));
  }

  int set_option(int fd, int level, int name, int value) noexcept override {
    if (level == SOL_SOCKET && name == SO_LINGER) {
      const linger how{value < 0 ? 0 : 1, value < 0 ? 0 : value};
      return checked(::setsockopt(fd, level, name, &how, sizeof how));
    }
    return checked(::setsockopt(fd, level, name, &value, sizeof value));
  }
  int pending_error(int fd) noexcept override {
    int number = 0;
    socklen_t bytes = sizeof number;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &bytes) < 0 ? errno : number;
  }
  int local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override {
    return checked(::getsockname(fd, name, bytes));
  }
  int peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override {
    return checked(::getpeername(fd, name, bytes));
  }
  int poll(int fd, short events) noexcept override {
    pollfd polled{fd, events, 0};
    const int found = checked(::poll(&polled, 1, 0));
    return found <= 0 ? found : polled.revents;
  }

  int make_set() noexcept override { return checked(::epoll_create1(EPOLL_CLOEXEC)); }
  int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept override {
    epoll_event wanted{};
    wanted.events = events | EPOLLET;
    wanted.data.u64 = tag;
    return checked(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted));
  }
  int remove(int set, int fd) noexcept override {
    return checked(::epoll_ctl(set, EPOLL_CTL_DEL, fd, nullptr));
  }
  int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept override {
    return checked(::epoll_wait(set, events, most, timeout_ms));
  }
  int wait_for_sets(pollfd* sets, unsigned number, int timeout_ms) noexcept override {
    return checked(::poll(sets, number, timeout_ms));
  }
  int duplicate(int fd) noexcept override { return checked(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
  // The set reports its edges: it need not be read.
  int make_bell() noexcept override { return checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
  void ring(int bell) noexcept override { static_cast<void>(::eventfd_write(bell, 1)); }
};

std::atomic<kernel*> replacement{nullptr};

}  // namespace

int kernel::wait_for_sets(pollfd*, unsigned, int) noexcept { return -ENOSYS; }

#if TROUPE_HAS_LIBURING
int kernel::make_ring(unsigned entries, io_uring* ring, io_uring_params* how) noexcept {
  return io_uring_queue_init_params(entries, ring, how);
}
int kernel::enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                       std::size_t bytes) noexcept {
  return io_uring_enter2(static_cast<unsigned>(ring), submitted, least, flags,
                         static_cast<sigset_t*>(arg), bytes);
}
#else
int kernel::make_ring(unsigned, io_uring*, io_uring_params*) noexcept { return -ENOSYS; }
int kernel::enter_ring(int, unsigned, unsigned, unsigned, void*, std::size_t) noexcept {
  return -ENOSYS;
}
#endif

kernel& real_kernel() noexcept {
  static real instance;
  return instance;
}

kernel& system_kernel() noexcept {
  // order: acquire  sees a test's complete kernel; pairs with replaced_kernel/release
  kernel* other = replacement.load(std::memory_order_acquire);
  return other != nullptr ? *other : real_kernel();
}

// order: release  publishes the test's kernel; pairs with system_kernel/acquire
replaced_kernel::replaced_kernel(kernel& by) noexcept {
  replacement.store(&by, std::memory_order_release);
}
replaced_kernel::~replaced_kernel() { replacement.store(nullptr, std::memory_order_release); }

}  // namespace troupe::io
