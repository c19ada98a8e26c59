#include "actor/state/heap.hpp"

#include "actor/state/optional_state.hpp"
#include "actor/system/actor_system.hpp"
#include "troupe/context/persist.hpp"
#include "troupe/observe/trace.hpp"

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

actor_heap* heap_of(cell& actor) noexcept {
  return has_optional_state(actor) ? optional_state::of(actor).heap.get() : nullptr;
}

kept_failure report_own(cell& actor, message::handler method, std::exception_ptr what) noexcept {
  actor_heap* const heap = heap_of(actor);
  const kept_memory keeps = heap == nullptr ? kept_memory{} : heap->keep();
  kept_failure failed(std::move(what), keeps.held);
  if (keeps.held != nullptr) failures_keep = &keeps;
  actor_system::of(actor).report(&actor, method, failed.what);
  failures_keep = nullptr;
  return failed;
}

void destroy_object(cell& actor) noexcept {
  if (observe::tracing()) [[unlikely]]
    observe::record(observe::event::ended, actor.type->name, id_of(actor));
  actor_heap* const heap = heap_of(actor);
  if (heap != nullptr) heap->close();
  actor.type->destroy(object_of(actor));
  if (heap != nullptr) heap->end();
}

}  // namespace troupe::actor
