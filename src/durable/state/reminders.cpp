#include "durable/state/reminders.hpp"

#include <algorithm>
#include <charconv>

#include "base/invariant.hpp"
#include "durable/memory/outside_calls.hpp"
#include "troupe/base/error.hpp"
#include "troupe/cron/schedule.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t reminders_at_once = 100;
// The system's clock may be set while we wait.
constexpr milliseconds longest_sleep{30'000};

// The latest time that the system's clock can represent, and the longest span of a timer: no
// reminder is due later than these.
constexpr due_time latest{std::chrono::floor<milliseconds>(
    std::chrono::system_clock::time_point::max().time_since_epoch())};
constexpr milliseconds longest_span =
    std::chrono::floor<milliseconds>(std::chrono::nanoseconds::max());

constexpr std::string_view every_word = "every ", cron_word = "cron ";

}  // namespace

due_time time_after(due_time begin, milliseconds period, std::int64_t times) {
  std::int64_t span = 0, due = 0;
  const bool is_beyond = __builtin_mul_overflow(period.count(), times, &span) ||
                         __builtin_add_overflow(begin.time_since_epoch().count(), span, &due);
  return is_beyond ? latest : std::min(latest, due_time(milliseconds(due)));
}

std::string rule_every(milliseconds period) {
  return std::string(every_word) + std::to_string(period.count());
}

std::string rule_by(std::string_view cron) { return std::string(cron_word) + std::string(cron); }

std::optional<due_time> next_time(const stored_reminder& reminder, due_time now) {
  if (reminder.rule.starts_with(every_word)) {
    std::int64_t period = 0;
    const std::string_view digits = std::string_view(reminder.rule).substr(every_word.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), period);
    if (period <= 0) return std::nullopt;
    const std::int64_t missed = std::max<std::int64_t>((now - reminder.due).count(), 0) / period;
    return time_after(reminder.due, milliseconds(period), missed + 1);
  }
  if (reminder.rule.starts_with(cron_word)) {
    try {
      return cron_schedule(reminder.rule.substr(cron_word.size())).next(now);
    } catch (const error&) {
      return std::nullopt;  // no such time, or a zone file that was removed
    }
  }
  return std::nullopt;
}

std::string reminder_name_of(const actor_name& actor, const std::string& reminder) {
  return actor.kind + '\n' + actor.key + '\n' + reminder;
}

void reminders::change(reading to) {
  TROUPE_INVARIANT(to == reading::under_way ? reading_ == reading::none : reading_ != reading::none,
                   "R2");
  reading_ = to;
}

void reminders::plan(due_time due) {
  if (next_due_ && *next_due_ <= due) return;
  next_due_ = due;
  timer_.cancel();
  const milliseconds span = std::clamp(due - clock_.now(), milliseconds(0),
                                       clock_.is_simulated() ? longest_span : longest_sleep);
  const outside_calls none;
  timer_ = on_.after(span, when_due_, {.weak = true});
  TROUPE_INVARIANT(next_due_ && *next_due_ <= due, "R1");
}

bool reminders::wake() {
  next_due_ = std::nullopt;
  const bool begins = reading_ == reading::none;
  change(begins ? reading::under_way : reading::repeats);
  return begins;
}

std::size_t reminders::read_max() const noexcept { return reminders_at_once + strange_; }

void reminders::end_reading() {
  const bool repeats = reading_ == reading::repeats;
  change(reading::none);
  for (const firing& done : std::exchange(fired_meanwhile_, {})) firing_.erase(done);
  if (repeats) plan(clock_.now());
}

bool reminders::send(const stored_reminder& reminder) {
  return firing_.insert({reminder_name_of(reminder.to, reminder.name), reminder.due}).second;
}

void reminders::stored(const batch::fired_reminder& reminder) {
  firing done{reminder_name_of(reminder.actor, reminder.name), reminder.due};
  reading_ == reading::none ? void(firing_.erase(done))
                            : fired_meanwhile_.push_back(std::move(done));
  // Each reading that has found the row since it was due has left it alone.
  if (reminder.next) plan(*reminder.next);
}

void reminders::forget(bool reads_again) {
  TROUPE_INVARIANT(fired_meanwhile_.empty() || reading_ != reading::none, "R3");
  if (!firing_.empty() && reads_again) plan(clock_.now());
  firing_ = std::set<firing>(fired_meanwhile_.begin(), fired_meanwhile_.end());
}

}  // namespace troupe::durable::parts
