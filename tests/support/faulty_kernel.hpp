// faulty_kernel: the real system calls, but one of them fails or transfers too little, by a script.
// An entry of an io_uring counts as the call that it stands for. If it is to fail, a nop takes its
// place.
#pragma once

#include <linux/io_uring.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>

#include "io/kernel/kernel.hpp"

namespace troupe::test {

enum class call {
  socket,
  bind,
  listen,
  accept,
  connect,
  shutdown,
  close,
  receive,
  send,
  read,
  write,
  set_option,
  local_name,
  make_set,
  add,
  wait_events,
  make_bell,
  open,
  read_at,
  write_at,
  sync,
  status,
  send_file,
  poll,
  make_ring,
  enter_ring
};
inline constexpr call all_calls[] = {
    call::socket,      call::bind,       call::listen,     call::accept,    call::connect,
    call::shutdown,    call::close,      call::receive,    call::send,      call::read,
    call::write,       call::set_option, call::local_name, call::make_set,  call::add,
    call::wait_events, call::make_bell,  call::poll,       call::make_ring, call::enter_ring};
inline constexpr call calls_of_files[] = {call::open,   call::read_at,   call::write_at, call::sync,
                                          call::status, call::send_file, call::close};
inline const char* name_of(call one) {
  constexpr const char* names[] = {
      "socket",  "bind",        "listen",    "accept",    "connect",    "shutdown",   "close",
      "receive", "send",        "read",      "write",     "set_option", "local_name", "make_set",
      "add",     "wait_events", "make_bell", "open",      "read_at",    "write_at",   "sync",
      "status",  "send_file",   "poll",      "make_ring", "enter_ring"};
  return names[static_cast<std::size_t>(one)];
}

// These are used beside values of errno: a call transfers half of what it could, or all calls
// transfer one byte each from then on.
enum : int { short_transfer = -1, one_byte_transfers = -2 };

class faulty_kernel : public io::kernel {
 public:
  // `kind`, `nth`: the nth call of this kind (from 0) gets `fault`.
  faulty_kernel(call kind, int nth, int fault) : kind_(kind), left_(nth), fault_(fault) {}
  bool failed() const { return failed_.load(); }

  int socket(int domain, int type, int protocol) noexcept override {
    return fails(call::socket) ? -fault_ : real_.socket(domain, type, protocol);
  }
  int bind(int fd, const sockaddr* to, socklen_t bytes) noexcept override {
    return fails(call::bind) ? -fault_ : real_.bind(fd, to, bytes);
  }
  int listen(int fd, int backlog) noexcept override {
    return fails(call::listen) ? -fault_ : real_.listen(fd, backlog);
  }
  int accept(int fd, sockaddr* peer, socklen_t* bytes) noexcept override {
    return fails(call::accept) ? refused(fd) : real_.accept(fd, peer, bytes);
  }
  int connect(int fd, const sockaddr* to, socklen_t bytes) noexcept override {
    if (!fails(call::connect)) return real_.connect(fd, to, bytes);
    // An interrupted connect() still connects.
    if (fault_ == EINTR) static_cast<void>(real_.connect(fd, to, bytes));
    return -fault_;
  }
  int shutdown(int fd, int how) noexcept override {
    return fails(call::shutdown) ? -fault_ : real_.shutdown(fd, how);
  }
  int close(int fd) noexcept override {
    const int result = real_.close(fd);  // whatever close() returns, the descriptor is closed
    return fails(call::close) ? -fault_ : result;
  }
  std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                         socklen_t* peer_bytes) noexcept override {
    if (!fails(call::receive)) return real_.receive(fd, data, bytes, peer, peer_bytes);
    return fault_ > 0 ? refused(fd)
                      : rearmed(fd, real_.receive(fd, data, part_of(bytes), peer, peer_bytes));
  }
  std::ptrdiff_t send(int fd, const void* data, std::size_t bytes, const sockaddr* to,
                      socklen_t to_bytes) noexcept override {
    if (!fails(call::send)) return real_.send(fd, data, bytes, to, to_bytes);
    return fault_ > 0 ? refused(fd)
                      : rearmed(fd, real_.send(fd, data, part_of(bytes), to, to_bytes));
  }
  std::ptrdiff_t read(int fd, void* data, std::size_t bytes) noexcept override {
    if (!fails(call::read)) return real_.read(fd, data, bytes);
    return fault_ > 0 ? refused(fd) : rearmed(fd, real_.read(fd, data, part_of(bytes)));
  }
  std::ptrdiff_t write(int fd, const void* data, std::size_t bytes) noexcept override {
    if (!fails(call::write)) return real_.write(fd, data, bytes);
    return fault_ > 0 ? refused(fd) : rearmed(fd, real_.write(fd, data, part_of(bytes)));
  }
  // Calls for files with `at_once` never succeed, so that the longer path is tested, too.
  int open(const char* path, int flags, mode_t permissions, bool at_once) noexcept override {
    if (at_once) return -EAGAIN;
    return fails(call::open) ? -fault_ : real_.open(path, flags, permissions, false);
  }
  std::ptrdiff_t read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                         bool at_once) noexcept override {
    if (at_once) return -EAGAIN;
    if (!fails(call::read_at)) return real_.read_at(fd, data, bytes, offset, false);
    return fault_ > 0 ? -fault_ : real_.read_at(fd, data, part_of(bytes), offset, false);
  }
  std::ptrdiff_t write_at(int fd, const void* data, std::size_t bytes,
                          std::int64_t offset) noexcept override {
    if (!fails(call::write_at)) return real_.write_at(fd, data, bytes, offset);
    return fault_ > 0 ? -fault_ : real_.write_at(fd, data, part_of(bytes), offset);
  }
  int sync(int fd, bool data_alone) noexcept override {
    return fails(call::sync) ? -fault_ : real_.sync(fd, data_alone);
  }
  int status(int fd, struct statx* to) noexcept override {
    return fails(call::status) ? -fault_ : real_.status(fd, to);
  }
  std::ptrdiff_t send_file(int to, int from, std::int64_t offset,
                           std::size_t bytes) noexcept override {
    if (!fails(call::send_file)) return real_.send_file(to, from, offset, bytes);
    return fault_ > 0 ? refused(to)
                      : rearmed(to, real_.send_file(to, from, offset, part_of(bytes)));
  }
  int set_option(int fd, int level, int name, int value) noexcept override {
    return fails(call::set_option) ? -fault_ : real_.set_option(fd, level, name, value);
  }
  int pending_error(int fd) noexcept override { return real_.pending_error(fd); }
  int local_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override {
    return fails(call::local_name) ? -fault_ : real_.local_name(fd, name, bytes);
  }
  int peer_name(int fd, sockaddr* name, socklen_t* bytes) noexcept override {
    return real_.peer_name(fd, name, bytes);
  }
  int poll(int fd, short events) noexcept override {
    return fails(call::poll) ? -fault_ : real_.poll(fd, events);
  }
  int make_set() noexcept override {
    return fails(call::make_set) ? -fault_ : set_ = real_.make_set();
  }
  int add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept override {
    if (fails(call::add)) return -fault_;
    std::lock_guard lock(mutex_);
    known_[fd] = {events, tag};
    return real_.add(set, fd, events, tag);
  }
  int remove(int set, int fd) noexcept override { return real_.remove(set, fd); }
  int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept override {
    return fails(call::wait_events) ? -fault_ : real_.wait_events(set, events, most, timeout_ms);
  }
  int wait_for_sets(pollfd* sets, unsigned number, int timeout_ms) noexcept override {
    return fails(call::wait_events) ? -fault_ : real_.wait_for_sets(sets, number, timeout_ms);
  }
  int duplicate(int fd) noexcept override { return real_.duplicate(fd); }
  int make_bell() noexcept override { return fails(call::make_bell) ? -fault_ : real_.make_bell(); }
  void ring(int bell) noexcept override { real_.ring(bell); }

  int make_ring(unsigned entries, io_uring* made, io_uring_params* how) noexcept override {
    return fails(call::make_ring) ? -fault_ : real_.make_ring(entries, made, how);
  }
  int enter_ring(int ring, unsigned submitted, unsigned least, unsigned flags, void* arg,
                 std::size_t bytes) noexcept override {
    return fails(call::enter_ring) ? -fault_
                                   : real_.enter_ring(ring, submitted, least, flags, arg, bytes);
  }
  bool scripts_rings() const noexcept override { return true; }
  void asked(io_uring_sqe& entry) noexcept override {
    const call kind = call_of(entry.opcode);
    if (kind == call::enter_ring || !fails(kind)) return;
    if (fault_ < 0) {
      entry.len = static_cast<std::uint32_t>(part_of(entry.len));
      return;
    }
    {
      std::lock_guard lock(mutex_);
      refused_.insert(entry.user_data);
    }
    if (kind == call::close) return;  // whatever close() returns, the descriptor is closed
    const std::uint64_t mark = entry.user_data;
    entry = {};
    entry.opcode = IORING_OP_NOP;
    entry.user_data = mark;
  }
  int came_to(std::uint64_t mark, int result) noexcept override {
    std::lock_guard lock(mutex_);
    return refused_.erase(mark) == 0 ? result : -fault_;
  }

 private:
  static call call_of(std::uint8_t asked) noexcept {
    switch (asked) {
      case IORING_OP_ACCEPT:
        return call::accept;
      case IORING_OP_CONNECT:
        return call::connect;
      case IORING_OP_RECV:
        return call::receive;
      case IORING_OP_SEND:
        return call::send;
      case IORING_OP_POLL_ADD:
        return call::poll;
      case IORING_OP_OPENAT:
        return call::open;
      case IORING_OP_READ:
        return call::read_at;
      case IORING_OP_WRITE:
        return call::write_at;
      case IORING_OP_FSYNC:
        return call::sync;
      case IORING_OP_CLOSE:
        return call::close;
      default:
        return call::enter_ring;  // none of these
    }
  }
  bool fails(call kind) {
    if (kind != kind_) return false;
    const int before = left_.fetch_sub(1);
    const bool yes = fault_ == one_byte_transfers ? before <= 0 : before == 0;
    if (yes) failed_ = true;
    return yes;
  }
  std::size_t part_of(std::size_t bytes) const {
    return fault_ == one_byte_transfers ? std::min<std::size_t>(bytes, 1) : (bytes + 1) / 2;
  }
  int refused(int fd) { return static_cast<int>(rearmed(fd, -fault_)); }
  // A real system that would block, or has no more bytes, reports when that changes. This one
  // reports it at once.
  std::ptrdiff_t rearmed(int fd, std::ptrdiff_t result) {
    std::lock_guard lock(mutex_);
    if (const auto at = known_.find(fd); at != known_.end()) {
      epoll_event wanted{};
      wanted.events = at->second.events | EPOLLET;
      wanted.data.u64 = at->second.tag;
      static_cast<void>(::epoll_ctl(set_, EPOLL_CTL_MOD, fd, &wanted));
    }
    return result;
  }

  struct registration {
    std::uint32_t events;
    std::uint64_t tag;
  };
  io::kernel& real_ = io::real_kernel();
  const call kind_;
  std::atomic<int> left_;
  const int fault_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::map<int, registration> known_;
  std::set<std::uint64_t> refused_;  // marks of the entries that were refused
  int set_ = -1;
};

}  // namespace troupe::test
