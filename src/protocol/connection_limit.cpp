#include "troupe/protocol/protocol.hpp"

namespace troupe::protocols {

// The event is reset before the count is checked. So a connection that leaves after the check sets
// it.
task<bool> connection_limit::wait(std::stop_token end) {
  for (;;) {
    if (end.stop_requested()) co_return false;
    left_.reset();
    {
      std::lock_guard lock(mutex_);
      if (taken_ < options_.connections_max) co_return true;
    }
    bool stopped = false;
    try {
      future<> one = left_.wait();
      co_await std::move(one).stop(end);
    } catch (const cancelled&) {
      if (!end.stop_requested()) throw;
      stopped = true;
    }
    if (stopped) co_return false;
  }
}

connection_limit::permit::permit(std::shared_ptr<connection_limit> in) noexcept
    : in_(std::move(in)) {
  std::lock_guard lock(in_->mutex_);
  ++in_->taken_;
}

connection_limit::permit::~permit() {
  if (in_ == nullptr) return;
  {
    std::lock_guard lock(in_->mutex_);
    --in_->taken_;
  }
  in_->left_.set();
}

}  // namespace troupe::protocols
