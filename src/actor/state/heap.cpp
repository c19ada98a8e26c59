#include "actor/state/heap.hpp"

#include "troupe/context/persist.hpp"

namespace troupe::actor {

kept_memory actor_heap::keep() noexcept try {
  contexts::share& held = contexts::keep_since_snapshot(*memory_);
  return {std::shared_ptr<const void>(
              &held,
              [](const void* share) {
                const_cast<contexts::share*>(static_cast<const contexts::share*>(share))->drop();
              }),
          memory_->bytes()};
} catch (const std::bad_alloc&) {
  return {};
}

}  // namespace troupe::actor
