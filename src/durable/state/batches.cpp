#include "durable/state/batches.hpp"

#include <algorithm>

#include "base/invariant.hpp"

namespace troupe::durable::parts {
namespace {

// The memory of the bytes before is used again, unless it is much more than these need.
void copy_bytes(const bytes& source, bytes& copy) {
  if (copy.capacity() > 2 * source.size() + 256) copy = bytes();
  copy.assign(source.begin(), source.end());
}

}  // namespace

filling& batches::open() {
  if (open_ == nullptr) {
    auto batch = std::make_shared<filling>();
    batch->data.number = ++last_number_;
    open_ = std::move(batch);
  }
  return *open_;
}

std::uint64_t batches::newest() const noexcept {
  return open_ != nullptr         ? open_->data.number
         : committing_ != nullptr ? committing_->data.number
                                  : stored_;
}

shard_set batches::touched() const noexcept {
  shard_set all;
  if (open_ != nullptr) all |= open_->touched;
  if (committing_ != nullptr) all |= committing_->touched;
  return all;
}

bool batches::has_changes_of(const activation& actor) const {
  const actor_name name{actor.kind.name, actor.key};
  const auto is_its = [&name](const auto& change) { return change.actor == name; };
  const auto has_some = [&is_its](const filling* batch) {
    return batch != nullptr && (std::ranges::any_of(batch->data.states, is_its) ||
                                std::ranges::any_of(batch->data.events, is_its));
  };
  return has_some(open_.get()) || has_some(committing_.get());
}

bool batches::begin_commits() noexcept { return !std::exchange(commits_, true); }

void batches::end_commits() noexcept {
  TROUPE_INVARIANT(commits_, "B2");
  commits_ = false;
}

std::shared_ptr<filling> batches::take(bool always, std::int64_t now_ns) {
  TROUPE_INVARIANT(commits_ && committing_ == nullptr, "B2");
  if (always) open();
  if (open_ == nullptr || (open_->empty() && !always)) {
    end_commits();
    return nullptr;
  }
  std::shared_ptr<filling> taken = drop_open();
  TROUPE_INVARIANT(taken->data.number > stored_ && taken->data.number == last_number_, "B1");
  std::erase(taken->data.arrived, nullptr);
  taken->began_ns = now_ns;
  committing_ = taken;
  return taken;
}

void batches::stored(const filling& taken) noexcept {
  TROUPE_INVARIANT(taken.data.number > stored_ && taken.data.number <= last_number_, "B1");
  stored_ = taken.data.number;
  committing_ = nullptr;
}

void batches::arrive(const record_ref& message) {
  filling& into = open();
  into.touched.set(message->row.shard);
  message->stored_with = into.data.number;
  message->place_in_batch = into.data.arrived.size();
  into.data.arrived.push_back(std::shared_ptr<const stored_message>(message, &message->row));
  if (message->on_stored != nullptr) {
    into.posted.push_back(message);
    into.begin_span(*message);
  }
}

void batches::leave_inbox(const record& message, bool is_dead) {
  if (message.stored_with == 0) return;
  filling& into = open();
  if (message.stored_with == into.data.number && !is_dead) {
    TROUPE_INVARIANT(into.data.arrived[message.place_in_batch].get() == &message.row, "B3");
    into.data.arrived[message.place_in_batch] = nullptr;
  } else {
    into.data.handled.push_back(message.row.order);
  }
}

void batches::keep_state(activation& actor, bytes state, std::vector<bytes> events) {
  filling& into = open();
  for (bytes& event : events) {
    into.data.events.push_back({{actor.kind.name, actor.key}, ++actor.events, std::move(event)});
    actor.changed_with = into.data.number;
  }
  const bool evented = actor.kind.apply != nullptr;
  if (evented ? state.empty() : state == actor.last) return;
  if (evented) actor.events_in_snapshot = actor.events;
  if (!evented) copy_bytes(state, actor.last);
  const class_shape& shape = actor.kind.shapes.front();
  stored_state now{shape.schema, shape.fingerprint, std::move(state), actor.events, {}};
  actor.changed_with = into.data.number;
  if (actor.state_with == into.data.number) {
    TROUPE_INVARIANT(into.data.states[actor.place_in_batch].actor.key == actor.key &&
                         into.data.states[actor.place_in_batch].actor.kind == actor.kind.name,
                     "B4");
    into.data.states[actor.place_in_batch].state = std::move(now);
    return;
  }
  actor.state_with = into.data.number;
  actor.place_in_batch = into.data.states.size();
  into.data.states.push_back({{actor.kind.name, actor.key}, std::move(now)});
}

void batches::keep_answer(const record& message, const bytes& value, const handler_failed* failed,
                          due_time now) {
  stored_answer kept{message.row.id,
                     message.row.asker,
                     std::chrono::floor<std::chrono::seconds>(now),
                     failed != nullptr,
                     "",
                     value,
                     {}};
  if (message.row.named && message.row.asker.is_none()) kept.call = call_identity::of(message.row);
  if (failed != nullptr) {
    kept.error_type = failed->type();
    const std::string text = failed->what();
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    kept.value.assign(first, first + text.size());
  }
  open().data.answers.push_back(std::move(kept));
}

void batches::keep_reminders(turn_state& done) {
  batch& into = open().data;
  for (batch::reminder_name& reminder : done.forgotten)
    into.removed_reminders.push_back(std::move(reminder));
  for (stored_reminder& reminder : done.reminders) {
    // A handler may have removed one of that name before it set this one.
    std::erase_if(into.removed_reminders, [&reminder](const batch::reminder_name& removed) {
      return removed.actor == reminder.to && removed.name == reminder.name;
    });
    into.reminders.push_back(std::move(reminder));
  }
}

// A post that came with this batch has a span.
void batches::begin_commit_span(const record& message) {
  filling& into = open();
  const bool has_one = message.on_stored != nullptr && message.stored_with == into.data.number;
  if (!has_one) into.begin_span(message);
}

void batches::keep_dead_letter(const record& message, const handler_failed& why, due_time now) {
  dead_letter dead{message.row, why.type(), why.what(),
                   std::chrono::floor<std::chrono::seconds>(now)};
  dead.message.failures = message.failures;
  open().data.dead.push_back(std::move(dead));
}

}  // namespace troupe::durable::parts
