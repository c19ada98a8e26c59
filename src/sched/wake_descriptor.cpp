#include "sched/wake_descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "base/atomics.hpp"

namespace troupe::sched {

wake_descriptor::~wake_descriptor() {
  // order: relaxed  no other thread uses it any longer
  if (const int fd = fd_.load(std::memory_order_relaxed); fd >= 0) ::close(fd);
}

int wake_descriptor::open() {
  // order: relaxed  a number; the kernel orders the use of its eventfd
  int known = fd_.load(std::memory_order_relaxed);
  if (known >= 0) return known;
  const int descriptor = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0)
    throw std::system_error(errno, std::system_category(), "troupe: wake_descriptor: eventfd");
  // order: relaxed  as above
  if (fd_.compare_exchange_strong(known, descriptor, std::memory_order_relaxed)) return descriptor;
  ::close(descriptor);
  return known;
}

void wake_descriptor::ring() noexcept {
  // order: relaxed  as open(). The owner has seen it open, but nothing orders this thread behind
  // that: it may have to look again
  int fd = fd_.load(std::memory_order_relaxed);
  for (int spin = 0; fd < 0; ++spin) {
    base::std_atomics::wait_a_little(spin);
    fd = fd_.load(std::memory_order_relaxed);  // order: relaxed  as above
  }
  const std::uint64_t signals = 1;
  while (::write(fd, &signals, sizeof signals) < 0 && errno == EINTR) {
  }
}

void wake_descriptor::clear() noexcept {
  std::uint64_t rung = 0;
  // order: relaxed  as open()
  const int fd = fd_.load(std::memory_order_relaxed);
  while (::read(fd, &rung, sizeof rung) < 0 && errno == EINTR) {
  }
}

}  // namespace troupe::sched
