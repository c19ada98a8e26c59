// Reminders: messages that are sent at a time, also after a restart.
#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "durable/engine/engine.hpp"
#include "troupe/cron/schedule.hpp"
#include "troupe/durable/turn.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view every_word = "every ";
constexpr std::string_view cron_word = "cron ";
constexpr std::size_t reminders_at_once = 100;
// The system's clock may be set while we wait.
constexpr milliseconds longest_sleep{30'000};
constexpr milliseconds again_after_failure{1'000};

// The latest time that the system's clock can tell, and the longest span of a timer: no reminder is
// due later than these.
constexpr std::chrono::sys_time<milliseconds> latest{std::chrono::floor<milliseconds>(
    std::chrono::system_clock::time_point::max().time_since_epoch())};
constexpr milliseconds longest_span =
    std::chrono::floor<milliseconds>(std::chrono::nanoseconds::max());

// So many periods after a time; the latest time instead of one that is beyond.
std::chrono::sys_time<milliseconds> time_after(std::chrono::sys_time<milliseconds> begin,
                                               milliseconds period, std::int64_t times) {
  std::int64_t span = 0, due = 0;
  const bool is_beyond = __builtin_mul_overflow(period.count(), times, &span) ||
                         __builtin_add_overflow(begin.time_since_epoch().count(), span, &due);
  return is_beyond ? latest : std::min(latest, std::chrono::sys_time(milliseconds(due)));
}

std::string name_of(const actor_name& of, const std::string& reminder) {
  return of.kind + '\n' + of.key + '\n' + reminder;
}

}  // namespace

void engine::set_reminder(turn_state& from, std::string_view name, wall_time due, std::string rule,
                          request what) {
  check_reminder_name(name);
  const record_ref made = make_record(what);
  std::erase_if(from.reminders, [name](const stored_reminder& one) { return one.name == name; });
  stored_reminder kept;
  kept.to = {from.who.kind.name, from.who.key};
  kept.shard = from.who.shard;
  kept.name = std::string(name);
  kept.due = std::chrono::ceil<milliseconds>(due);
  kept.rule = std::move(rule);
  kept.method = made->what.method;
  kept.signature = made->what.signature;
  kept.arguments = std::move(made->what.arguments);
  from.reminders.push_back(std::move(kept));
}

// With the mutex held.
void engine::plan_reminder(due_time due) {
  if (next_due_ && *next_due_ <= due) return;
  next_due_ = due;
  reminder_timer_.cancel();
  const milliseconds span =
      std::clamp(due - wall_now(), milliseconds(0), simulated_ ? longest_span : longest_sleep);
  const std::weak_ptr<engine> self = weak_from_this();
  const auto wake = [self] {
    const std::shared_ptr<engine> here = self.lock();
    if (here == nullptr) return;
    guard held(*here);
    here->next_due_ = std::nullopt;
    here->fires_again_ = here->fires_;
    if (here->fires_) return;
    here->fires_ = true;
    here->start([](std::shared_ptr<engine> of) { return fire(std::move(of)); });
  };
  const outside_calls none;
  reminder_timer_ = on_.after(span, wake, {.weak = true});
}

task<> engine::fire(std::shared_ptr<engine> self) {
  std::vector<stored_reminder> first;
  bool failed = false;
  std::size_t most = reminders_at_once;
  std::uint64_t round = 0;
  {
    guard held(*self);
    most += self->strange_reminders_;
    round = self->read_round_;
  }
  try {
    auto looks = self->in_->reminders(most);
    first = co_await std::move(looks);
  } catch (...) {
    failed = true;
  }
  guard held(*self);
  if (failed || self->away_ != nullptr) {
    self->plan_reminder(self->wall_now() + again_after_failure);
  } else if (round != self->read_round_) {
    self->plan_reminder(self->wall_now());  // other nodes may have sent what was read
  } else {
    self->fire_all(first, most);
  }
  self->fires_ = false;
  for (const firing& one : std::exchange(self->fired_meanwhile_, {})) self->firing_.erase(one);
  if (std::exchange(self->fires_again_, false)) self->plan_reminder(self->wall_now());
}

// With the mutex held.
void engine::fire_all(const std::vector<stored_reminder>& first, std::size_t most) {
  const due_time now = wall_now();
  // Those of classes that this program does not have stay, and are read beside others.
  strange_reminders_ = 0;
  for (const stored_reminder& one : first) {
    if (one.due > now) return plan_reminder(one.due);
    if (!fire_one(one, now)) ++strange_reminders_;
  }
  // The rows change when the batch is stored.
  if (first.size() == most) plan_reminder(now + again_after_failure / 100);
}

// With the mutex held. The message of the reminder is stored.
void engine::fired(const batch::fired_reminder& one) {
  ++counts_.reminders;
  firing done{name_of(one.of, one.name), one.due};
  fires_ ? fired_meanwhile_.push_back(std::move(done)) : void(firing_.erase(done));
  // Whoever has read the row since it was due has left it alone.
  if (one.next) plan_reminder(*one.next);
}

// With the mutex held. Those that were not stored are still due.
void engine::forget_firing() {
  if (!firing_.empty() && !is_taken_) plan_reminder(wall_now());
  firing_ = std::set<firing>(fired_meanwhile_.begin(), fired_meanwhile_.end());
}

// With the mutex held. Returns false if nothing was sent.
bool engine::fire_one(const stored_reminder& one, due_time now) {
  const kind_table* const kind = classes_.find(one.to.kind);
  if (kind == nullptr) return false;
  const std::uint32_t shard = shard_of(one.to);
  if (!is_open(shard)) return true;
  if (!firing_.insert({name_of(one.to, one.name), one.due}).second) return true;
  const auto message = std::make_shared<record>();
  message->kind = kind;
  message->method = classes::find_method(*kind, one.method, one.signature);
  message->what.id = message_id::of(name_of(one.to, one.name))
                         .part(static_cast<std::uint64_t>(one.due.time_since_epoch().count()));
  message->what.to = one.to;
  message->what.shard = shard;
  message->what.method = one.method;
  message->what.signature = one.signature;
  message->what.arguments = one.arguments;
  const std::optional<due_time> next = next_time(one, now);
  open_batch().data.fired_reminders.push_back({one.to, one.name, one.due, next});
  touch(shard);
  if (next) plan_reminder(*next);
  take_in(message);
  return true;
}

// After the time that has come: the first one that has not.
std::optional<engine::due_time> engine::next_time(const stored_reminder& one, due_time now) {
  if (one.rule.starts_with(every_word)) {
    std::int64_t period = 0;
    const std::string_view digits = std::string_view(one.rule).substr(every_word.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), period);
    if (period <= 0) return std::nullopt;
    const std::int64_t missed = std::max<std::int64_t>((now - one.due).count(), 0) / period;
    return time_after(one.due, milliseconds(period), missed + 1);
  }
  if (one.rule.starts_with(cron_word)) {
    try {
      return cron_schedule(one.rule.substr(cron_word.size())).next(now);
    } catch (const error&) {
      return std::nullopt;  // no such time, or a zone file that has gone
    }
  }
  return std::nullopt;
}

}  // namespace troupe::durable::parts

namespace troupe::durable {

void turn::set_period(std::string_view name, time_span wanted, parts::request what) {
  if (wanted.count() <= 0)
    throw option_error("troupe: durable: the period of a reminder must be more than 0");
  const auto period = std::chrono::ceil<std::chrono::milliseconds>(wanted);
  set_reminder(name, parts::time_after(state_.of.wall_now(), period, 1),
               std::string(parts::every_word) + std::to_string(period.count()), std::move(what));
}

void turn::set_schedule(std::string_view name, std::string_view cron, parts::request what) {
  const cron_schedule times{std::string(cron)};
  set_reminder(name, times.next(state_.of.wall_now()),
               std::string(parts::cron_word) + std::string(cron), std::move(what));
}

}  // namespace troupe::durable
