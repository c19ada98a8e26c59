#include "durable/engine/reminder_sender.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds again_after_failure{1'000};

}  // namespace

void reminder_sender::open() {
  reminders_.open([weak = std::weak_ptr<engine>(core_.upper_tasks.keep()), this] {
    const engine_ref alive = weak.lock();
    if (alive == nullptr) return;
    guard held(core_);
    if (!reminders_.wake()) return;
    core_.start([this](engine_ref keeps) { return fire(std::move(keeps)); });
  });
}

task<> reminder_sender::fire(engine_ref) {
  std::vector<stored_reminder> first;
  bool failed = false;
  std::size_t most = 0;
  std::uint64_t round = 0;
  {
    guard held(core_);
    most = reminders_.read_max();
    round = inbox_.round();
  }
  try {
    auto looks = core_.storage->reminders(most);
    first = co_await std::move(looks);
  } catch (...) {
    failed = true;
  }
  guard held(core_);
  if (failed || !health_.works()) {
    reminders_.plan_after(again_after_failure);
  } else if (round != inbox_.round()) {
    reminders_.plan_after(milliseconds(0));  // other nodes may have sent the reminders read here
  } else {
    fire_all(first, most);
  }
  reminders_.end_reading();
}

void reminder_sender::fire_all(const std::vector<stored_reminder>& first, std::size_t most) {
  const due_time now = core_.clock.now();
  // Reminders of classes that this program does not have stay, and are read beside others.
  reminders_.begin_rows();
  for (const stored_reminder& reminder : first) {
    if (reminder.due > now) return reminders_.plan(reminder.due);
    if (!fire_one(reminder, now)) reminders_.skip_row();
  }
  // The rows change when the batch is stored.
  if (first.size() == most) reminders_.plan(now + again_after_failure / 100);
}

// Returns false if nothing was sent.
bool reminder_sender::fire_one(const stored_reminder& reminder, due_time now) {
  const kind_table* const kind = core_.classes.find(reminder.to.kind);
  if (kind == nullptr) return false;
  const std::uint32_t shard = shards_.of(reminder.to);
  if (!shards_.is_open(shard)) return true;
  if (!reminders_.send(reminder)) return true;
  const auto message = new_record();
  message->kind = kind;
  message->method = classes::find_method(*kind, reminder.method, reminder.signature);
  message->row.id = message_id::of(reminder_name_of(reminder.to, reminder.name))
                        .part(static_cast<std::uint64_t>(reminder.due.time_since_epoch().count()));
  message->row.to = reminder.to;
  message->row.shard = shard;
  message->row.method = reminder.method;
  message->row.signature = reminder.signature;
  message->row.arguments = reminder.arguments;
  const std::optional<due_time> next = next_time(reminder, now);
  batches_.open().data.fired_reminders.push_back({reminder.to, reminder.name, reminder.due, next});
  core_.touch(shard);
  if (next) reminders_.plan(*next);
  mailboxes_.take_in(message);
  return true;
}

}  // namespace troupe::durable::parts
