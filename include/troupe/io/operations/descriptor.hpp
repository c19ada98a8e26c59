// descriptor: owns an open descriptor of the system. For the library's own use; users meet streams
// and listeners.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <utility>

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::io {

struct slot;

// Move-only. The destructor closes the descriptor; operations that are under way then end as
// cancelled. Thread: one at a time, except that operations in the two directions may run at the
// same time.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  // Wraps a descriptor that has another owner; it is never closed here.
  static descriptor borrow(int fd) noexcept {
    descriptor borrowed(fd);
    borrowed.borrowed_ = true;
    return borrowed;
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

  // The descriptor's slot in the reactor of that runtime. The first call binds the descriptor to
  // the runtime. Throws usage_error if the descriptor is bound to another runtime or is not open;
  // io_error; std::bad_alloc.
  slot& bind(sched::io_driver_slot& driver);
  // The slot; null before the first operation.
  slot* bound() const noexcept { return slot_; }
  // The slot, if the descriptor is bound to that runtime; otherwise null.
  slot* bound_to(const sched::io_driver_slot& driver) const noexcept;

  // "127.0.0.1:80" for a socket that has a peer; otherwise "descriptor 7".
  std::string peer() const;

 private:
  slot* slot_ = nullptr;
  int fd_ = -1;
  bool borrowed_ = false;
};

}  // namespace troupe::io
