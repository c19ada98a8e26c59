// optional_state: state that few actors need, between their cell and their object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actor/state/heap.hpp"
#include "actor/state/mail_bound.hpp"
#include "actor/state/supervision_state.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

struct activation;

struct limits {
  unsigned messages;
  std::int64_t ns;
};

using async_call_list = base::intrusive_list<tasks::async_call, &tasks::async_call::link>;

struct optional_state {
  limits turn{0, 0};                  // messages == 0: the system's limits
  async_call_list async_calls;        // the suspended calls of a reentrant actor
  std::unique_ptr<mail_bound> bound;  // of a bounded mailbox
  // of an actor with a context of its own; objects that refer to it are destroyed first
  std::unique_ptr<actor_heap> heap;
  std::unique_ptr<supervision_state> supervision;     // of a supervised actor
  std::atomic<std::uintptr_t>* urgent_end = nullptr;  // see activation::urgent_end
  // the object of an actor that activate() made
  void* adopted = nullptr;
  // of a reentrant actor with suspended calls: its activation when it was parked last
  activation* parked_as = nullptr;
  // whether the actor is in the system's waiting_lists, by this link
  bool listed = false;
  bool named = false;  // whether it has a name (actor_names.hpp)
  base::list_link<cell> listed_link{};
  // which of `async_calls` cancel_turns handles next
  tasks::async_call* next_cancelled = nullptr;
  // at which of `async_calls` the look of this number continues (waits/suspended.cpp)
  tasks::async_call* next_looked = nullptr;
  std::uint32_t looked_in = 0;

  static optional_state& of(cell& actor) noexcept {
    return *reinterpret_cast<optional_state*>(&actor + 1);
  }
  static const optional_state& of(const cell& actor) noexcept {
    return *reinterpret_cast<const optional_state*>(&actor + 1);
  }
};

inline bool has_optional_state(const cell& actor) noexcept {
  return (actor.flags & cell::has_optional_state) != 0;
}
// The context of an actor that has one of its own; null for most actors.
inline actor_heap* heap_of(cell& actor) noexcept {
  return has_optional_state(actor) ? optional_state::of(actor).heap.get() : nullptr;
}

// The supervision of an actor that has an error policy or a parent; null for others, for which a
// handler that throws has no consequences.
inline supervision_state* supervision_of(cell& actor) noexcept {
  return has_optional_state(actor) ? optional_state::of(actor).supervision.get() : nullptr;
}
inline bool is_adopted(const cell& actor) noexcept {
  return has_optional_state(actor) && optional_state::of(actor).adopted != nullptr;
}
inline void* object_of(cell& actor) noexcept {
  return is_adopted(actor) ? optional_state::of(actor).adopted : actor.object();
}
// How many bytes after the object's beginning `part` lies; SIZE_MAX if it is no part of the object.
inline std::size_t offset_in(cell& actor, const void* part) noexcept {
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(part) - reinterpret_cast<std::uintptr_t>(object_of(actor));
  return offset < actor.type->bytes ? offset : SIZE_MAX;
}
inline mail_bound* bound_of(cell& actor) noexcept {
  return actor.is_bounded() ? optional_state::of(actor).bound.get() : nullptr;
}

}  // namespace troupe::actor
