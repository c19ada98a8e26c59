#include "actor/system/actor_names.hpp"

#include <new>

namespace troupe::actor {

bool actor_names::add(std::uint64_t id, std::string_view name) noexcept try {
  std::lock_guard lock(mutex_);
  names_[id] = name;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void actor_names::remove(std::uint64_t id) noexcept {
  std::lock_guard lock(mutex_);
  names_.erase(id);
}

std::string actor_names::find(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = names_.find(id);
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace troupe::actor
