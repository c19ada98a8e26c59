#include "troupe/durable/turn.hpp"

#include "durable/engine/turns.hpp"

namespace troupe::durable {

const std::string& turn::key() const noexcept { return state_.actor.key; }
const message_id& turn::id() const noexcept { return state_.handles->what.id; }
message_id turn::next_id() noexcept { return id().part(++state_.parts); }

void turn::set_reminder(std::string_view name, wall_time due, std::string rule,
                        parts::request what) {
  state_.owner.set_reminder(state_, name, due, std::move(rule), std::move(what));
}

void turn::forget_reminder(std::string_view name) {
  std::erase_if(state_.reminders,
                [name](const stored_reminder& reminder) { return reminder.name == name; });
  state_.forgotten.push_back({{state_.actor.kind.name, state_.actor.key}, std::string(name)});
}

}  // namespace troupe::durable
