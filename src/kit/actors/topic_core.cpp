#include "troupe/kit/actors/topic_core.hpp"

#include <functional>
#include <mutex>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::kit {

std::size_t subscription_key_hash::operator()(const subscription_key& key) const noexcept {
  const std::hash<const void*> hash;
  return hash(key.actor) * 31 + hash(key.method);
}

bool topic_core::add(const std::shared_ptr<topic_core>& self,
                     const std::shared_ptr<subscription>& added, future<ended> ends) {
  std::uint64_t number = 0;
  {
    std::shared_ptr<const list> stale;  // dropped without the mutex (T3)
    const std::lock_guard lock(self->mutex_);
    if (!self->all_.try_emplace(added->key, added).second) return false;
    self->order_.push_back(*added);
    stale = std::move(self->snapshot_);
    number = added->number = ++self->added_;
  }
  std::shared_ptr<end_watch> watch;
  try {
    // Without the mutex: the actor may have ended, and is removed at once then.
    watch =
        end_watch::start(std::move(ends), [state = std::weak_ptr(self), key = added->key, number] {
          if (const auto topic = state.lock()) topic->remove(key, number);
        });
  } catch (...) {
    self->remove(added->key, number);
    throw;
  }
  const std::lock_guard lock(self->mutex_);
  added->watch = std::move(watch);
  return true;
}

bool topic_core::remove(const subscription_key& key, std::uint64_t number) {
  decltype(all_)::node_type gone;  // both are dropped without the mutex (T3)
  std::shared_ptr<const list> stale;
  std::shared_ptr<end_watch> watch;
  {
    const std::lock_guard lock(mutex_);
    const auto at = all_.find(key);
    if (at == all_.end() || (number != 0 && at->second->number != number)) return false;
    order_.remove(*at->second);
    watch = std::move(at->second->watch);
    gone = all_.extract(at);
    stale = std::move(snapshot_);
  }
  if (watch != nullptr) watch->cancel();
  return true;
}

std::shared_ptr<const topic_core::list> topic_core::begin_publishing() {
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) {
    auto copied = std::make_shared<list>();
    copied->reserve(all_.size());
    for (subscription& member : order_) copied->push_back(member.shared_from_this());
    TROUPE_INVARIANT(copied->size() == all_.size(), "T1");
    snapshot_ = std::move(copied);
  }
  TROUPE_INVARIANT(snapshot_->size() == all_.size(), "T2");
  ++done_.published;
  return snapshot_;
}

void topic_core::end_publishing(std::size_t told, std::size_t missed) noexcept {
  const std::lock_guard lock(mutex_);
  done_.told += told;
  done_.missed += missed;
}

topic_counts topic_core::counts() const noexcept {
  const std::lock_guard lock(mutex_);
  topic_counts seen = done_;
  seen.subscribers = all_.size();
  return seen;
}

}  // namespace troupe::kit
