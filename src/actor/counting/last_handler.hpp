// last_handler: which handler of an actor began last, while its runtime is observed.
//
// In such a runtime each cell has a word for it, right in front of the object. The turn that writes
// it therefore touches no other cache line, and a reader finds it in its copy of the slab.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

using last_word = std::atomic<message::handler>;
inline constexpr std::size_t last_bytes = sizeof(last_word);
static_assert(last_bytes == 8 && last_word::is_always_lock_free);

// The bytes from the cell to that word.
inline std::size_t last_offset(const cell& actor) noexcept {
  return actor.offset * std::size_t{8} - last_bytes;
}
TROUPE_INLINE last_word& last_of(cell& actor) noexcept {
  return *std::launder(
      reinterpret_cast<last_word*>(reinterpret_cast<std::byte*>(&actor) + last_offset(actor)));
}
inline void begin_last(cell& actor) noexcept { ::new (&last_of(actor)) last_word(nullptr); }
TROUPE_INLINE void set_last(cell& actor, message::handler method) noexcept {
  // order: relaxed  a snapshot for readers; only the actor's turn writes
  last_of(actor).store(method, std::memory_order_relaxed);
}

}  // namespace troupe::actor
