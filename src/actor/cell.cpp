#include "troupe/actor/cell.hpp"

#include <algorithm>

#include "actor/activation.hpp"
#include "actor/system.hpp"
#include "actor/turn.hpp"
#include "memory/stable_pool.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/invariant.hpp"

namespace troupe::actor {

bool ref_state::add() noexcept {
  // order: relaxed  the caller holds a ref already
  return (bits_.fetch_add(1, std::memory_order_relaxed) & orphaned) != 0;
}

ref_state::dropped ref_state::drop() noexcept {
  // order: relaxed  only compared
  std::uint32_t seen = bits_.load(std::memory_order_relaxed);
  for (;;) {
    const bool last = seen == 1;
    // order: acq_rel  what the holder sent is seen by whoever sees the count without it; pairs with revive
    if (bits_.compare_exchange_weak(seen, last ? retiring : seen - 1, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      if ((seen & orphaned) != 0) return dropped::orphan;
      return last ? dropped::last : dropped::others_left;
    }
  }
}

bool ref_state::drop_only() noexcept {
  // order: acquire  sees what former holders sent; pairs with drop/acq_rel
  if (bits_.load(std::memory_order_acquire) != 1) return false;
  // order: relaxed  nobody else can look before the worker's lock, or the actor's end, publishes it
  bits_.store(retiring, std::memory_order_relaxed);
  return true;
}

bool ref_state::revive() noexcept {
  // order: acquire  sees what former holders sent; pairs with drop/acq_rel
  std::uint32_t seen = bits_.load(std::memory_order_acquire);
  while ((seen & count_mask) != 0) {
    // order: acquire  as above, when the count has come to zero meanwhile
    if (bits_.compare_exchange_weak(seen, seen & ~retiring, std::memory_order_acquire, std::memory_order_acquire)) return true;
  }
  return false;
}

std::uint32_t ref_state::make_orphan() noexcept {
  // order: acq_rel  whoever drops later sees the system's end
  return bits_.fetch_or(orphaned, std::memory_order_acq_rel) & count_mask;
}

void add_ref(cell& to) noexcept {
  // order: relaxed  the caller holds a ref already
  if (to.refs.add()) system::of(to).orphan_refs.fetch_add(1, std::memory_order_relaxed);
}

void drop_ref(cell& to) noexcept {
  if (drop_at_home(to)) return;
  switch (to.refs.drop()) {
    case ref_state::dropped::others_left: return;
    case ref_state::dropped::last: return say_farewell(to);
    case ref_state::dropped::orphan: return system::of(to).drop_orphan_ref();
  }
}

// order: relaxed  the thread's own
cell* current_cell() noexcept { return current_turn().actor.load(std::memory_order_relaxed); }

void check_self(cell* running, const void* object) {
  if (running == nullptr || running->object() != object) {
    throw usage_error(
        "troupe: self() is for the actor whose handler is running, called with `this`; elsewhere keep the ref that spawn() returned");
  }
}

construction::construction(cell& of) noexcept : before_(current_cell()) {
  // order: relaxed  the thread's own
  current_turn().actor.store(&of, std::memory_order_relaxed);
}
// order: relaxed  the thread's own
construction::~construction() { current_turn().actor.store(before_, std::memory_order_relaxed); }

// Recycled blocks are not constructed anew: `home` may be looked at by a sender with an old address.
activation& make_activation(cell& actor) {
  static_assert(sizeof(activation) <= memory::stable_bytes);
  auto& made = *static_cast<activation*>(memory::allocate_stable());
  made.type = &turn_type;
  made.linger_slot = -1;
  made.where = sched::place::elsewhere;
  made.actor = &actor;
  made.clear();
  made.farewell = false;
  return made;
}

void free_activation(activation& rested) noexcept {
  TROUPE_INVARIANT(rested.empty() && rested.linger_slot < 0, "M3");
  // order: relaxed  nobody's any more (worker.hpp)
  rested.home.store(nullptr, std::memory_order_relaxed);
  memory::deallocate_stable(&rested);
}

cell& make_cell(const placement& where, const cell_type& type) {
  const bool limited = where.turn_messages != 0;
  std::size_t offset = sizeof(cell) + (limited ? sizeof(cell_limits) : 0);
  offset = (offset + type.alignment - 1) / type.alignment * type.alignment;
  // Slots up to 4 KiB start at multiples of 8 only: an object that wants more gets a slab of its own.
  const bool over_aligned = type.alignment > 8;
  const std::size_t bytes = offset + type.bytes;
  system& home = where.home;
  void* slot = home.slots.allocate(over_aligned ? std::max(bytes, memory::slot_space::middle_max + 1) : bytes,
                                   own_magazines(home));
  cell& made = *::new (slot) cell(type, where.executor, static_cast<std::uint8_t>(offset / 8));
  if (where.stop_on_error) made.flags |= cell::stop_on_error;
  if (limited) {
    made.flags |= cell::limited;
    ::new (&made + 1) cell_limits{{where.turn_messages, where.turn_ns}};
  }
  return made;
}

void unmake_cell(cell& unborn) noexcept {
  system& home = system::of(unborn);
  home.slots.free(&unborn, own_magazines(home));
}

}  // namespace troupe::actor
