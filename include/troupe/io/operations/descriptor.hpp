// descriptor: owns an open descriptor of the system. The library's own; users meet streams and
// listeners.
#pragma once

#include <string>
#include <utility>

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::io {

struct slot;

// Move-only. Closes it when it goes; what is pending then ends as cancelled. One thread at a time,
// but for operations in both directions.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  // Somebody else's, which stays open.
  static descriptor borrow(int fd) noexcept {
    descriptor made(fd);
    made.borrowed_ = true;
    return made;
  }
  descriptor(descriptor&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)),
        fd_(std::exchange(other.fd_, -1)),
        borrowed_(other.borrowed_) {}
  descriptor& operator=(descriptor&& other) noexcept {
    if (this == &other) return *this;
    close();
    fd_ = std::exchange(other.fd_, -1);
    borrowed_ = other.borrowed_;
    slot_ = std::exchange(other.slot_, nullptr);
    return *this;
  }
  ~descriptor() { close(); }

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  void close() noexcept;

  // Its slot in the reactor of that runtime; it keeps to the first one. Throws usage_error for
  // another runtime's or when it is not open, io_error, std::bad_alloc.
  slot& bind(sched::io_driver_slot& driver);
  // Its own slot; null before its first operation.
  slot* bound() const noexcept { return slot_; }
  // The same, if it is of that runtime.
  slot* bound_to(const sched::io_driver_slot& driver) const noexcept;

  // "127.0.0.1:80" of a socket that has a peer, else "descriptor 7".
  std::string peer() const;

 private:
  slot* slot_ = nullptr;
  int fd_ = -1;
  bool borrowed_ = false;
};

}  // namespace troupe::io
