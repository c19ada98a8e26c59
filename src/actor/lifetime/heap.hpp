// heap: the context of an actor that has one of its own (spawn_options::context).
#pragma once

#include <memory>
#include <optional>

#include "actor/spawned/keeping.hpp"
#include "context/running.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/context/context.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe::actor {

// In the actor's extras; used in its turns only. As long as it is alive what its constructor
// allocated stays. When it ends, or is constructed anew, all goes, in one step; the context itself
// stays until the cell goes, for it may be the current one.
class actor_heap {
 public:
  actor_heap(const context_options& options, bool rolls_back)
      : memory_(make_context(options)), empty_(*memory_), rolls_back_(rolls_back) {}

  context& memory() noexcept { return *memory_; }
  // The constructor has returned.
  void begin() noexcept {
    if (rolls_back_) constructed_.emplace(*memory_);
  }
  // A handler has ended, and no other call of the actor is suspended.
  void end_handler() noexcept {
    if (constructed_) memory_->rollback(*constructed_);
  }
  // The object is about to go: it may have snapshots of its own.
  void close() noexcept { constructed_.reset(); }
  // It has gone.
  void end() noexcept {
    memory_->rollback(empty_);
    memory_->trim();
  }
  // Holds what the handler has allocated, to which what it throws may refer. Null when memory is
  // out.
  kept_memory keep() noexcept;

 private:
  const owned_context memory_;
  snapshot empty_;
  std::optional<snapshot> constructed_;
  const bool rolls_back_;
};

// Null for most.
actor_heap* heap_of(cell& actor) noexcept;

// The calling thread's current context is the actor's own from now on, or there is none;
// contexts::leave() with what it returns undoes that. So what an actor without one allocates never
// lies in the context of another one, which constructs it for instance.
inline context* enter_heap(actor_heap* own) noexcept {
  return contexts::enter(own == nullptr ? nullptr : &own->memory());
}

// In the actor's turn: a failure of its own, which may refer to what it allocated: that stays for
// as long as what this returns is there.
kept_failure report_own(cell& actor, message::handler method, std::exception_ptr what) noexcept;

// Destroys the actor's object, and discards what it allocated.
void destroy_object(cell& actor) noexcept;

}  // namespace troupe::actor
