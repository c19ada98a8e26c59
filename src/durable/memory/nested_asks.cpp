#include "durable/memory/nested_asks.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"

namespace troupe::durable::parts {

void begin_wait(const record_ref& message, const turn_state& asks, activation* asked) {
  TROUPE_INVARIANT(message->asker == nullptr, "Q1");
  asks.handles->asks.push_back(message);
  message->asker = &asks.actor;
  message->asked = asked;
  message->asked_by = asks.handles;
  ++asks.actor.asks;
  if (asked != nullptr) ++asked->asked;
}

void end_wait(record& message) noexcept {
  if (message.asker == nullptr) return;
  activation& asker = *std::exchange(message.asker, nullptr);
  TROUPE_INVARIANT(asker.asks > 0, "Q1");
  --asker.asks;
  if (message.asked == nullptr) return;
  TROUPE_INVARIANT(message.asked->asked > 0, "Q1");
  --message.asked->asked;
  const auto at = std::ranges::find(asker.waits_for, message.asked);
  if (at != asker.waits_for.end()) asker.waits_for.erase(at);
}

}  // namespace troupe::durable::parts
