// heap: the context of an actor that has one of its own (spawn_options::context).
#pragma once

#include <memory>
#include <optional>

#include "actor/state/kept_failure.hpp"
#include "context/current_context.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe::actor {

// Lies in the actor's optional state; used in the actor's turns only. The constructor's
// allocations live as long as the object. When the actor ends or is constructed anew, everything is
// discarded in one step. The context itself lives until the cell goes, since it may be the current
// one.
class actor_heap {
 public:
  actor_heap(const context_options& options, bool rolls_back)
      : memory_(make_context(options)), empty_(*memory_), rolls_back_(rolls_back) {}

  context& memory() noexcept { return *memory_; }
  // The constructor has returned.
  void begin() noexcept {
    if (rolls_back_) constructed_.emplace(*memory_);
  }
  // A handler has ended, and no other call of the actor is suspended: discards the handler's
  // allocations, if the actor rolls back.
  void end_handler() noexcept {
    if (constructed_) memory_->rollback(*constructed_);
  }
  // The object will be destroyed now: it may have snapshots of its own.
  void close() noexcept { constructed_.reset(); }
  // The object has been destroyed.
  void end() noexcept {
    memory_->rollback(empty_);
    memory_->trim();
  }
  // Keeps the handler's allocations alive: an exception that it throws may refer to them. Null
  // when memory is out.
  kept_memory keep() noexcept;

 private:
  const owned_context memory_;
  snapshot empty_;
  std::optional<snapshot> constructed_;
  const bool rolls_back_;
};

// Makes `own` the calling thread's current context, or none when it is null; contexts::leave() with
// the returned value undoes that. Without the "none", an actor that has no context of its own would
// allocate in the context of another actor, for example of the one that constructs it.
inline context* enter_heap(actor_heap* own) noexcept {
  return contexts::enter(own == nullptr ? nullptr : &own->memory());
}

}  // namespace troupe::actor
