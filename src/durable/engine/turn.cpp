#include "troupe/durable/turn.hpp"

#include "durable/engine/engine.hpp"

namespace troupe::durable {

const std::string& turn::key() const noexcept { return state_.who.key; }
const message_id& turn::id() const noexcept { return state_.handles->what.id; }
message_id turn::next_id() noexcept { return id().part(++state_.parts); }

void turn::set_reminder(std::string_view name, wall_time due, std::string rule,
                        parts::request what) {
  state_.of.set_reminder(state_, name, due, std::move(rule), std::move(what));
}

void turn::forget_reminder(std::string_view name) {
  std::erase_if(state_.reminders, [name](const stored_reminder& one) { return one.name == name; });
  state_.forgotten.push_back({{state_.who.kind.name, state_.who.key}, std::string(name)});
}

}  // namespace troupe::durable
