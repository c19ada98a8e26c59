#include "actor/waits/waiting.hpp"

#include "actor/lifetime/extras.hpp"
#include "actor/mailbox/activation.hpp"

namespace troupe::actor {

void waiting_lists::add(tasks::async_call& parked, activation& active) noexcept {
  // order: relaxed  the list's lock publishes it
  parked.call.next.store(reinterpret_cast<std::uintptr_t>(&active), std::memory_order_relaxed);
  parked.listed = true;
  shard& to = of(parked);
  std::lock_guard lock(to.mutex);
  parked.next_call = to.first;
  parked.call_link = &to.first;
  if (to.first != nullptr) to.first->call_link = &parked.next_call;
  to.first = &parked;
}

activation& waiting_lists::activation_of(const tasks::async_call& listed) noexcept {
  // order: relaxed  as above
  return *reinterpret_cast<activation*>(listed.call.next.load(std::memory_order_relaxed));
}

void waiting_lists::remove(tasks::async_call& done) noexcept {
  std::lock_guard lock(of(done).mutex);
  *done.call_link = done.next_call;
  if (done.next_call != nullptr) done.next_call->call_link = done.call_link;
  done.listed = false;
}

void waiting_lists::add(cell& reentrant) noexcept {
  cell_extras& extras = cell_extras::of(reentrant);
  std::lock_guard lock(reentrants_mutex_);
  extras.next_listed = reentrants_;
  extras.listed_link = &reentrants_;
  if (reentrants_ != nullptr) cell_extras::of(*reentrants_).listed_link = &extras.next_listed;
  reentrants_ = &reentrant;
  extras.listed = true;
}

void waiting_lists::remove(cell& reentrant) noexcept {
  cell_extras& extras = cell_extras::of(reentrant);
  std::lock_guard lock(reentrants_mutex_);
  *extras.listed_link = extras.next_listed;
  if (extras.next_listed != nullptr)
    cell_extras::of(*extras.next_listed).listed_link = extras.listed_link;
  extras.listed = false;
}

void waiting_lists::for_each_call(const std::function<void(tasks::async_call&)>& look) {
  for (shard& one : shards_) {
    std::lock_guard lock(one.mutex);
    for (tasks::async_call* at = one.first; at != nullptr; at = at->next_call) look(*at);
  }
}

void waiting_lists::for_each_reentrant(const std::function<void(cell&)>& look) {
  std::lock_guard lock(reentrants_mutex_);
  for (cell* at = reentrants_; at != nullptr; at = cell_extras::of(*at).next_listed) look(*at);
}

}  // namespace troupe::actor
