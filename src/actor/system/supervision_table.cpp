#include "actor/system/supervision_table.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::actor {

base::list_link<cell>& sibling_link_of(cell& child) noexcept {
  return optional_state::of(child).supervision->sibling_link;
}

void supervision_table::add_child(cell& parent, cell& child) {
  // order: relaxed  the parent's own turn sees it
  in_use_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  supervision_state& own = *optional_state::of(child).supervision;
  if (own.in_parent == supervision_state::membership::ended) return;
  TROUPE_INVARIANT(own.in_parent == supervision_state::membership::none, "S1");
  children_[&parent].push_back(child);
  own.in_parent = supervision_state::membership::listed;
}

void supervision_table::add_watch(cell& actor, promise<ended>&& watcher) {
  // order: relaxed  the actor's own turn sees it
  in_use_.store(true, std::memory_order_relaxed);
  std::exception_ptr no_memory;
  try {
    std::lock_guard lock(mutex_);
    auto& [waiting, prune_at] = watchers_[&actor];
    if (waiting.size() >= prune_at) {
      std::erase_if(waiting, [](const promise<ended>& waiter) { return waiter.abandoned(); });
      prune_at = std::max<std::size_t>(16, 2 * waiting.size());
    }
    waiting.push_back(std::move(watcher));
  } catch (const std::bad_alloc&) {
    no_memory = std::current_exception();
  }
  if (no_memory != nullptr) watcher.set_exception(std::move(no_memory));
}

void supervision_table::end(cell& actor, cell* parent, ended how,
                            void (*stop)(cell& child) noexcept) noexcept {
  std::vector<promise<ended>> waiting;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = children_.find(&actor); found != children_.end()) {
      // All of them exist: a child that goes leaves the list first, under this mutex.
      while (cell* const child = found->second.pop_front()) {
        optional_state::of(*child).supervision->in_parent = supervision_state::membership::left;
        stop(*child);
      }
      children_.erase(found);
    }
    if (parent != nullptr) leave(*parent, actor);
    if (const auto found = watchers_.find(&actor); found != watchers_.end()) {
      waiting = std::move(found->second.waiting);
      watchers_.erase(found);
    }
  }
  for (promise<ended>& waiter : waiting) waiter.set_value(how);
}

void supervision_table::for_each_child(std::size_t most,
                                       const std::function<void(const cell&, const cell&)>& look) {
  std::lock_guard lock(mutex_);
  for (auto& [parent, all] : children_) {
    for (const cell& child : all) {
      if (most-- == 0) return;
      look(*parent, child);
    }
  }
}

// Under the mutex.
void supervision_table::leave(cell& parent, cell& child) noexcept {
  supervision_state& own = *optional_state::of(child).supervision;
  const auto before = std::exchange(own.in_parent, supervision_state::membership::ended);
  if (before != supervision_state::membership::listed) return;
  const auto found = children_.find(&parent);
  found->second.remove(child);
  if (found->second.empty()) children_.erase(found);
}

void supervision_table::forget(cell& destroyed) noexcept {
  supervision_state* const own = supervision_of(destroyed);
  if (own == nullptr || own->parent == nullptr) return;
  std::lock_guard lock(mutex_);
  leave(*own->parent, destroyed);
}

void supervision_table::end_all() noexcept {
  decltype(watchers_) left;
  {
    std::lock_guard lock(mutex_);
    left.swap(watchers_);
    children_.clear();
  }
  for (auto& [watched, all] : left) {
    for (promise<ended>& waiter : all.waiting) waiter.set_value(ended{});
  }
}

}  // namespace troupe::actor
