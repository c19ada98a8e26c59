#include "troupe/actor/settled_object.hpp"

#include "actor/mailbox/activation.hpp"
#include "actor/state/optional_state.hpp"

namespace troupe::actor {

const void* settled_object(cell& actor) noexcept {
  if (!actor.alive()) return nullptr;
  if (!actor.type->reentrant) {
    // order: acquire  sees the content of messages that other threads have sent; pairs with
    // append/acq_rel
    const std::uintptr_t seen = actor.word.load(std::memory_order_acquire);
    const bool active = seen != mailbox::inactive && seen != mailbox::closed;
    // The chain of messages stays valid: only this thread takes messages from it.
    if (active && mailbox::activation_under(seen).suspended != nullptr) return nullptr;
  }
  return object_of(actor);
}

}  // namespace troupe::actor
