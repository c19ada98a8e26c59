#include "cluster/placement/placement_core.hpp"

#include <time.h>

#include <utility>

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"

namespace troupe::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Runs while the machine is suspended, as the store's clock does.
nanoseconds time_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

void check(const placement_options& chosen) {
  if (chosen.lease == forever) return;
  if (chosen.lease < milliseconds(100))
    throw option_error("troupe: cluster: the lease is " + std::to_string(chosen.lease.count()) +
                       " ms; it must be at least 100 ms");
  if (chosen.margin < milliseconds(0) || chosen.margin >= chosen.lease / 2)
    throw option_error("troupe: cluster: the margin is " + std::to_string(chosen.margin.count()) +
                       " ms; it must be less than half of the lease");
}

}  // namespace

placement::core::core(runtime& on, std::unique_ptr<lease_store> store, std::string cluster,
                      member_row self, placement_options chosen, hooks told)
    : on_(on),
      store_(std::move(store)),
      cluster_(std::move(cluster)),
      self_(std::move(self)),
      chosen_(std::move(chosen)),
      told_(std::move(told)),
      period_(chosen_.lease == forever ? never : time(chosen_.lease) / 3),
      clock_(chosen_.clock) {
  check(chosen_);
  if (!clock_) clock_ = time_since_boot;
}

task<> placement::core::start(std::shared_ptr<core> self) {
  if (!self->chosen_.clock && kit::is_simulated())
    self->clock_ = [&on = self->on_] { return on.now(); };
  auto opens = self->store_->open(self->cluster_);
  co_await std::move(opens);
  self->wake();
  co_await self->started_.wait();
  std::lock_guard held(self->mutex_);
  if (self->start_failed_ != nullptr) std::rethrow_exception(self->start_failed_);
}

task<> placement::core::stop(std::shared_ptr<core> self, time at_most) {
  if (!self->started_.is_set()) self->kill();
  {
    std::lock_guard held(self->mutex_);
    if (self->loop_.is_over()) co_return;
    self->stop_asked_ = time_span(at_most).after(self->clock_());
  }
  self->wake();
  co_await self->ended_.wait();
}

void placement::core::kill() noexcept {
  {
    std::lock_guard held(mutex_);
    loop_.end();
    words_.set_until(time(0));
  }
  woken_.set();
  started_.set();
  ended_.set();
}

void placement::core::hurry() {
  if (lasts_forever()) return;
  {
    std::lock_guard held(mutex_);
    hurried_ = true;
  }
  woken_.set();
}

placement::core::member_ptr placement::core::owner(std::uint32_t shard) const {
  if (shard >= shard_count) return nullptr;
  std::lock_guard held(mutex_);
  return rows_[shard].owner;
}

std::vector<member_row> placement::core::members() const {
  std::lock_guard held(mutex_);
  std::vector<member_row> all;
  all.reserve(members_.size());
  for (const member_ptr& member : members_) all.push_back(*member);
  return all;
}

placement_counts placement::core::counts() const {
  std::lock_guard held(mutex_);
  return counts_;
}

placement::placement(runtime& on, std::unique_ptr<lease_store> store, std::string cluster,
                     member_row self, placement_options chosen, hooks told)
    : core_(std::make_shared<core>(on, std::move(store), std::move(cluster), std::move(self),
                                   std::move(chosen), std::move(told))) {}
placement::~placement() { kill(); }

task<> placement::start() { return core::start(core_); }
task<> placement::stop(time_span at_most) { return core::stop(core_, at_most); }
void placement::kill() noexcept { core_->kill(); }
void placement::hurry() { core_->hurry(); }

bool placement::is_mine(std::uint32_t shard) const noexcept { return core_->is_mine(shard); }
bool placement::is_mine(std::uint32_t shard, std::uint64_t fence) const noexcept {
  return core_->is_mine(shard, fence);
}
std::uint64_t placement::fence(std::uint32_t shard) const noexcept { return core_->fence(shard); }
std::shared_ptr<const member_row> placement::owner(std::uint32_t shard) const {
  return core_->owner(shard);
}
std::vector<member_row> placement::members() const { return core_->members(); }
placement_counts placement::counts() const { return core_->counts(); }

}  // namespace troupe::cluster
