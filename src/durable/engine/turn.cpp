#include "troupe/durable/turn.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "durable/engine/turns.hpp"
#include "durable/state/reminders.hpp"
#include "troupe/cron/schedule.hpp"

namespace troupe::durable {

const std::string& turn::key() const noexcept { return state_.actor.key; }
const message_id& turn::id() const noexcept { return state_.handles->row.id; }
message_id turn::next_id() noexcept { return id().part(++state_.parts); }

void turn::set_reminder(std::string_view name, wall_time due, std::string rule,
                        parts::request request) {
  state_.owner.set_reminder(state_, name, due, std::move(rule), std::move(request));
}

void turn::forget_reminder(std::string_view name) {
  std::erase_if(state_.reminders,
                [name](const stored_reminder& reminder) { return reminder.name == name; });
  state_.forgotten.push_back({{state_.actor.kind.name, state_.actor.key}, std::string(name)});
}

void turn::set_period(std::string_view name, time_span wanted, parts::request request) {
  if (wanted.count() <= 0)
    throw option_error("troupe: durable: the period of a reminder must be more than 0");
  const auto period = std::chrono::ceil<std::chrono::milliseconds>(wanted);
  set_reminder(name, parts::time_after(state_.owner.wall_now(), period, 1),
               parts::rule_every(period), std::move(request));
}

void turn::set_schedule(std::string_view name, std::string_view cron, parts::request request) {
  const cron_schedule times{std::string(cron)};
  set_reminder(name, times.next(state_.owner.wall_now()), parts::rule_by(cron), std::move(request));
}

}  // namespace troupe::durable
