// rejection_linger: whether a connection that a server turns away may wait until its peer has read
// the answer. Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace troupe::http {

// The connections of one server that are turned away. At most one sixteenth of the server's
// connections, and at least 8, may wait at the same time.
class rejection_lingers {
 public:
  explicit rejection_lingers(std::size_t connections) noexcept
      : most_(std::max(least, connections / share)) {}

 private:
  friend class rejection_linger;
  static constexpr std::size_t least = 8, share = 16;

  const std::size_t most_;
  std::atomic<std::size_t> count_{0};
};

// One of them, as long as it lives.
class rejection_linger {
 public:
  explicit rejection_linger(rejection_lingers& all) noexcept
      // order: relaxed  a count; publishes nothing
      : all_(all), may_linger_(all.count_.fetch_add(1, std::memory_order_relaxed) < all.most_) {}
  rejection_linger(const rejection_linger&) = delete;
  rejection_linger& operator=(const rejection_linger&) = delete;
  // order: relaxed  as above
  ~rejection_linger() { all_.count_.fetch_sub(1, std::memory_order_relaxed); }

  bool may_linger() const noexcept { return may_linger_; }

 private:
  rejection_lingers& all_;
  const bool may_linger_;
};

}  // namespace troupe::http
