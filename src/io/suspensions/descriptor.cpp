#include "troupe/io/operations/descriptor.hpp"

#include "io/kernel/peer.hpp"
#include "io/reactor/reactor.hpp"
#include "troupe/base/error.hpp"

namespace troupe::io {

std::string descriptor::peer() const {
  return peer_of(slot_ != nullptr ? slot_->owner->calls : system_kernel(), fd_);
}

void descriptor::close() noexcept {
  if (slot_ != nullptr) {
    reactor::close(*slot_);
  } else if (fd_ >= 0 && !borrowed_) {
    system_kernel().close(fd_);
  }
  slot_ = nullptr;
  fd_ = -1;
}

slot* descriptor::bound_to(const sched::io_driver_slot& driver) const noexcept {
  return slot_ != nullptr && slot_->owner == driver.taken() ? slot_ : nullptr;
}

slot& descriptor::bind(sched::io_driver_slot& driver) {
  if (slot* const known = bound_to(driver)) [[likely]]
    return *known;
  if (fd_ == -1)
    throw usage_error("troupe: I/O: the stream is not open: it was closed or moved from");
  reactor& reactor = reactor::of(driver);
  if (slot_ == nullptr) slot_ = &reactor.open(fd_, borrowed_);
  if (slot_->owner != &reactor)
    throw usage_error(
        "troupe: I/O: this stream belongs to another runtime, where it was used first");
  return *slot_;
}

}  // namespace troupe::io
