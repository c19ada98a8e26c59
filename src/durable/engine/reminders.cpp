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

void engine::open_reminders() {
  reminders_.open([self = weak_from_this()] {
    const std::shared_ptr<engine> here = self.lock();
    if (here == nullptr) return;
    guard held(*here);
    if (!here->reminders_.wake()) return;
    here->start([](std::shared_ptr<engine> of) { return fire(std::move(of)); });
  });
}

task<> engine::fire(std::shared_ptr<engine> self) {
  std::vector<stored_reminder> first;
  bool failed = false;
  std::size_t most = 0;
  std::uint64_t round = 0;
  {
    guard held(*self);
    most = self->reminders_.read_max();
    round = self->inbox_.round();
  }
  try {
    auto looks = self->in_->reminders(most);
    first = co_await std::move(looks);
  } catch (...) {
    failed = true;
  }
  guard held(*self);
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
  for (const stored_reminder& one : first) {
    if (one.due > now) return reminders_.plan(one.due);
    if (!fire_one(one, now)) reminders_.skip_row();
  }
  // The rows change when the batch is stored.
  if (first.size() == most) reminders_.plan(now + again_after_failure / 100);
}

// With the mutex held. Returns false if nothing was sent.
bool engine::fire_one(const stored_reminder& one, due_time now) {
  const kind_table* const kind = classes_.find(one.to.kind);
  if (kind == nullptr) return false;
  const std::uint32_t shard = shards_.of(one.to);
  if (!shards_.is_open(shard)) return true;
  if (!reminders_.send(one)) return true;
  const auto message = std::make_shared<record>();
  message->kind = kind;
  message->method = classes::find_method(*kind, one.method, one.signature);
  message->what.id = message_id::of(reminder_name_of(one.to, one.name))
                         .part(static_cast<std::uint64_t>(one.due.time_since_epoch().count()));
  message->what.to = one.to;
  message->what.shard = shard;
  message->what.method = one.method;
  message->what.signature = one.signature;
  message->what.arguments = one.arguments;
  const std::optional<due_time> next = next_time(one, now);
  batches_.open().data.fired_reminders.push_back({one.to, one.name, one.due, next});
  touch(shard);
  if (next) reminders_.plan(*next);
  take_in(message);
  return true;
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
