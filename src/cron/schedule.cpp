#include "troupe/cron/schedule.hpp"

#include <date/tz.h>

#include "cron/fields.hpp"

namespace troupe {

struct cron_schedule::state {
  std::string expression;
  std::string zone_name;
  cron::fields named;
  const date::time_zone* zone;  // null: UTC, which needs no zone files
};

namespace {

const date::time_zone* find_zone(std::string_view name) {
  if (name == "UTC") return nullptr;
  try {
    return name == "local" ? date::current_zone() : date::locate_zone(std::string(name));
  } catch (const std::exception& unknown) {
    throw cron_error(cron_field::zone,
                     "troupe: cron: zone: '" + std::string(name) +
                         "' is not among the zone files of the system (" + unknown.what() +
                         "); write it as Europe/Berlin or UTC, or install the package tzdata");
  }
}

date::local_seconds local_of(date::sys_seconds at, std::chrono::seconds offset) noexcept {
  return date::local_seconds(at.time_since_epoch() + offset);
}

// The clocks have shown the local times of this span that are earlier, under the rule before it.
date::local_seconds new_from(const date::time_zone& zone, const date::sys_info& span) {
  if (span.begin == date::sys_seconds::min()) return date::local_seconds::min();
  const date::sys_info before = zone.get_info(span.begin - std::chrono::seconds(1));
  return local_of(span.begin, before.offset);
}

// Between two changes of the clocks local time runs as absolute time does: each step of the loop
// looks at one such span.
date::sys_seconds next_in_zone(const cron::fields& named, const date::time_zone& zone,
                               date::sys_seconds from) {
  constexpr std::chrono::seconds second(1);
  date::sys_info span = zone.get_info(from);
  date::local_seconds given = local_of(from, span.offset);
  for (;;) {
    date::local_seconds found = named.after(given);
    if (!named.any_hour) {
      const date::local_seconds begins = new_from(zone, span);
      if (found < begins) found = named.after(begins - second);
    }
    const date::sys_seconds at(found.time_since_epoch() - span.offset);
    if (at < span.end) return at;
    const date::sys_info later = zone.get_info(span.end);
    const date::local_seconds continues = local_of(span.end, later.offset);
    if (!named.any_hour && found < continues) return span.end;  // it is skipped
    given = continues - second;
    span = later;
  }
}

}  // namespace

cron_schedule::cron_schedule(std::string_view expression, std::string_view zone) {
  const cron::fields named = cron::read(expression);
  const date::time_zone* const found = find_zone(zone);
  state_ = std::make_shared<const state>(
      state{std::string(expression), found == nullptr ? "UTC" : found->name(), named, found});
}

cron_schedule::time_point cron_schedule::next(wall_time after) const {
  const date::sys_seconds from = date::floor<std::chrono::seconds>(after);
  if (state_->zone != nullptr) return next_in_zone(state_->named, *state_->zone, from);
  const date::local_seconds found = state_->named.after(local_of(from, std::chrono::seconds(0)));
  return date::sys_seconds(found.time_since_epoch());
}

const std::string& cron_schedule::expression() const noexcept { return state_->expression; }
const std::string& cron_schedule::zone() const noexcept { return state_->zone_name; }

}  // namespace troupe
