#include "actor/system/consumer_table.hpp"

namespace troupe::actor {

consume_request* consumer_table::begin(cell& actor, consume_request& mine) noexcept {
  // order: relaxed  as at in_use_
  in_use_.store(true, std::memory_order_relaxed);
  return table_.with(actor, [&](consume_request*& slot) -> consume_request* {
    if (slot != nullptr) return slot == &mine ? nullptr : slot;
    mine.actor = &actor;
    mine.next_in_table = nullptr;
    slot = &mine;
    return nullptr;
  });
}

void consumer_table::end(cell& actor, consume_request& mine) noexcept {
  table_.with(actor, [&](consume_request*& slot) {
    if (slot == &mine) slot = mine.next_in_table;
  });
}

consume_request* consumer_table::call_in(cell& actor) noexcept {
  // order: relaxed  as at in_use_
  if (!in_use_.load(std::memory_order_relaxed)) return nullptr;
  return table_.with(actor, [](consume_request* slot) {
    const bool outside = slot != nullptr && slot->waits_outside;
    if (outside) slot->waits_outside = false;
    return outside ? slot : nullptr;
  });
}

}  // namespace troupe::actor
