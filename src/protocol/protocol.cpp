#include "troupe/protocol/protocol.hpp"

namespace troupe::protocols {

bool connection_limit::is_full() noexcept {
  std::lock_guard lock(mutex_);
  return taken_ >= options_.connections_max;
}

connection_limit::permit::permit(std::shared_ptr<connection_limit> limit) noexcept
    : limit_(std::move(limit)) {
  std::lock_guard lock(limit_->mutex_);
  ++limit_->taken_;
}

connection_limit::permit::~permit() {
  if (limit_ == nullptr) return;
  {
    std::lock_guard lock(limit_->mutex_);
    --limit_->taken_;
  }
  limit_->left();
}

}  // namespace troupe::protocols
