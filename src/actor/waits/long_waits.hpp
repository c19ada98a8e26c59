// long_waits: for how long suspended turns have waited, as the looks of one thread show.
//
// A wait does not record when it began, so that it costs nothing. Instead each look marks the waits
// that it sees first; a time is thus short by up to the time between two looks. A later wait in the
// same memory has no mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "actor/waits/suspended.hpp"

namespace troupe::actor {

// An answer, or a lock, for which a suspended turn waits.
struct long_wait {
  suspended_call call;
  std::uint32_t first_seen;
  bool for_lock;
};

inline constexpr std::size_t long_waits_max = 10'000;

// Marks each wait that no look has seen before with `now`, which is not 0, in a unit of the
// caller's. Calls `look` for the asks and the waits for locks that were seen first at `before` or
// earlier, once no turn is held any longer; for at most long_waits_max of them. Calls of one
// runtime must come from one thread. Cost: as describe_suspended. Throws std::bad_alloc.
void look_at_waits(actor_system& system, std::uint32_t now, std::uint32_t before,
                   const std::function<void(const long_wait&)>& look);

}  // namespace troupe::actor
