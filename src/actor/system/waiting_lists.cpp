#include "actor/system/waiting_lists.hpp"

#include "actor/state/optional_state.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

void waiting_lists::add(tasks::async_call& parked, activation& active) noexcept {
  // order: relaxed  the list's lock publishes it
  parked.call.next.store(reinterpret_cast<std::uintptr_t>(&active), std::memory_order_relaxed);
  parked.set_listed(true);
  of(parked).calls.push_front(parked);
}

activation& waiting_lists::activation_of(const tasks::async_call& listed) noexcept {
  // order: relaxed  as above
  return *reinterpret_cast<activation*>(listed.call.next.load(std::memory_order_relaxed));
}

void waiting_lists::remove(tasks::async_call& done) noexcept {
  of(done).calls.remove(done);
  done.set_listed(false);
}

void waiting_lists::add(cell& reentrant) noexcept {
  reentrants_.push_front(reentrant);
  optional_state::of(reentrant).listed = true;
}

void waiting_lists::remove(cell& reentrant) noexcept {
  reentrants_.remove(reentrant);
  optional_state::of(reentrant).listed = false;
}

void waiting_lists::for_each_call(const std::function<void(tasks::async_call&, list_lock&)>& look) {
  for (shard& shard : shards_) {
    shard.calls.for_each([&look](tasks::async_call& call, list_lock& listed) {
      TROUPE_INVARIANT(call.is_listed(), "S2");
      look(call, listed);
    });
  }
}

void waiting_lists::for_each_reentrant(const std::function<void(cell&, list_lock&)>& look) {
  reentrants_.for_each(look);
}

}  // namespace troupe::actor
