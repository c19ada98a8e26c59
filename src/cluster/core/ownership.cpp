#include "cluster/core/ownership.hpp"

#include <utility>

#include "base/invariant.hpp"
#include "base/text/reason.hpp"

namespace troupe::cluster::parts {
void ownership::use(std::unique_ptr<placement> next) noexcept {
  TROUPE_INVARIANT(!stage_.has_joined(), "N7");
  std::lock_guard held(mutex_);
  if (placement_ != nullptr) placement_->kill();
  placement_.swap(next);
}

task<> ownership::start() { return placement_->start(); }
task<> ownership::stop(time_span at_most) { return placement_->stop(at_most); }
void ownership::kill() noexcept {
  std::lock_guard held(mutex_);
  placement_->kill();
}

void ownership::set_failure(std::exception_ptr failed) noexcept {
  std::lock_guard held(mutex_);
  failed_ = std::move(failed);
}
std::exception_ptr ownership::failed() const noexcept {
  std::lock_guard held(mutex_);
  return failed_;
}
std::string ownership::last_failure() const {
  std::lock_guard held(mutex_);
  return failed_ != nullptr ? base::reason_of(failed_) : placement_->counts().last_failure;
}

bool ownership::is_mine(std::uint32_t shard) const noexcept {
  return look([shard](const placement& now) { return now.is_mine(shard); });
}
bool ownership::owns(std::uint32_t shard, std::uint64_t fence) const noexcept {
  return look([shard, fence](const placement& now) { return now.is_mine(shard, fence); });
}
std::shared_ptr<const member_row> ownership::owner(std::uint32_t shard) const {
  return look([shard](const placement& now) { return now.owner(shard); });
}
void ownership::hurry() {
  look([](placement& now) { now.hurry(); });
}
placement_counts ownership::counts() const {
  return look([](const placement& now) { return now.counts(); });
}
std::vector<member_row> ownership::members() const {
  return look([](const placement& now) { return now.members(); });
}

}  // namespace troupe::cluster::parts
