#include "http/server/live_connection.hpp"

#include <sys/socket.h>

#include "io/sockets/sockets.hpp"

namespace troupe::http {

void live_connection::shut() noexcept {
  io::kernel& calls = io::current_kernel();
  // order: relaxed  it is set before the head is sent, so that a client whose connection ends
  // here although it is set has no head
  if (resets_.load(std::memory_order_relaxed)) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    if (calls.connect(fd_, &none, sizeof none) >= 0) return;
  }
  static_cast<void>(calls.shutdown(fd_, SHUT_RDWR));
}

std::int64_t live_connection::parking_ns() const noexcept {
  const phase now_in = clock_.phase_now();
  if (now_in != phase::idle && now_in != phase::fresh) return never_ns;
  return requested_.is_requested() ? never_ns : clock_.idle_since_ns() + soon_ns;
}

std::int64_t live_connection::unnamed_since_ns(std::chrono::nanoseconds head_time) const noexcept {
  if (client_.has_share || speaks_h2_ || clock_.phase_now() != phase::head) return never_ns;
  return clock_.expiry_ns() - head_time.count();
}

}  // namespace troupe::http
