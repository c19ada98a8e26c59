// Reminders: messages that are sent at a time, also after a restart.
#include <algorithm>
#include <utility>

#include "durable/engine/engine.hpp"
#include "troupe/cron/schedule.hpp"
#include "troupe/durable/turn.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds again_after_failure{1'000};

}  // namespace

void engine::open_reminders() {
  reminders_.open([self = weak_from_this()] {
    const std::shared_ptr<engine> alive = self.lock();
    if (alive == nullptr) return;
    guard held(alive->core_);
    if (!alive->reminders_.wake()) return;
    alive->core_.start([](std::shared_ptr<engine> of) { return fire(std::move(of)); });
  });
}

task<> engine::fire(std::shared_ptr<engine> self) {
  std::vector<stored_reminder> first;
  bool failed = false;
  std::size_t most = 0;
  std::uint64_t round = 0;
  {
    guard held(self->core_);
    most = self->reminders_.read_max();
    round = self->inbox_.round();
  }
  try {
    auto looks = self->storage_->reminders(most);
    first = co_await std::move(looks);
  } catch (...) {
    failed = true;
  }
  guard held(self->core_);
  if (failed || !self->health_.works()) {
    self->reminders_.plan_after(again_after_failure);
  } else if (round != self->inbox_.round()) {
    self->reminders_.plan_after(milliseconds(0));  // other nodes may have sent what was read
  } else {
    self->fire_all(first, most);
  }
  self->reminders_.end_reading();
}

// With the mutex held.
void engine::fire_all(const std::vector<stored_reminder>& first, std::size_t most) {
  const due_time now = clock_.now();
  // Those of classes that this program does not have stay, and are read beside others.
  reminders_.begin_rows();
  for (const stored_reminder& reminder : first) {
    if (reminder.due > now) return reminders_.plan(reminder.due);
    if (!fire_one(reminder, now)) reminders_.skip_row();
  }
  // The rows change when the batch is stored.
  if (first.size() == most) reminders_.plan(now + again_after_failure / 100);
}

// With the mutex held. Returns false if nothing was sent.
bool engine::fire_one(const stored_reminder& reminder, due_time now) {
  const kind_table* const kind = classes_.find(reminder.to.kind);
  if (kind == nullptr) return false;
  const std::uint32_t shard = shards_.of(reminder.to);
  if (!shards_.is_open(shard)) return true;
  if (!reminders_.send(reminder)) return true;
  const auto message = std::make_shared<record>();
  message->kind = kind;
  message->method = classes::find_method(*kind, reminder.method, reminder.signature);
  message->what.id = message_id::of(reminder_name_of(reminder.to, reminder.name))
                         .part(static_cast<std::uint64_t>(reminder.due.time_since_epoch().count()));
  message->what.to = reminder.to;
  message->what.shard = shard;
  message->what.method = reminder.method;
  message->what.signature = reminder.signature;
  message->what.arguments = reminder.arguments;
  const std::optional<due_time> next = next_time(reminder, now);
  batches_.open().data.fired_reminders.push_back({reminder.to, reminder.name, reminder.due, next});
  core_.touch(shard);
  if (next) reminders_.plan(*next);
  mailboxes_.take_in(message);
  return true;
}

}  // namespace troupe::durable::parts

namespace troupe::durable {

void turn::set_period(std::string_view name, time_span wanted, parts::request what) {
  if (wanted.count() <= 0)
    throw option_error("troupe: durable: the period of a reminder must be more than 0");
  const auto period = std::chrono::ceil<std::chrono::milliseconds>(wanted);
  set_reminder(name, parts::time_after(state_.owner.wall_now(), period, 1),
               std::string(parts::every_word) + std::to_string(period.count()), std::move(what));
}

void turn::set_schedule(std::string_view name, std::string_view cron, parts::request what) {
  const cron_schedule times{std::string(cron)};
  set_reminder(name, times.next(state_.owner.wall_now()),
               std::string(parts::cron_word) + std::string(cron), std::move(what));
}

}  // namespace troupe::durable
