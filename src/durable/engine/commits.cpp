// The transactions of a store: what is put into them, what follows when one is stored, and what
// when one is not.
#include <algorithm>
#include <optional>
#include <utility>

#include "durable/core/exception_text.hpp"
#include "durable/engine/engine.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t page_messages = 256;
// Old answers are looked for so often.
constexpr std::chrono::seconds forgets_every{60};
// How long callers wait for a database that may have made their commit.
constexpr milliseconds waits_for_outcome{1'000};

}  // namespace

// Stores one batch after the other until nothing is to be stored. Turns fill the next one while one
// is being stored.
task<> engine::commit_all(std::shared_ptr<engine> self) {
  for (;;) {
    // Turns that are due now come into the batch.
    co_await yield();
    const std::shared_ptr<filling> taken = self->take_batch();
    if (taken == nullptr) co_return;
    std::exception_ptr failed = self->refusal_of(*taken);
    if (failed == nullptr && taken->needs_transaction()) {
      try {
        auto commits = self->storage_->commit(std::shared_ptr<const batch>(taken, &taken->data));
        co_await std::move(commits);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    if (failed == nullptr) {
      self->stored(*taken);
    } else {
      auto recovers = self->recover(taken, failed);
      failed = nullptr;
      co_await std::move(recovers);
    }
  }
}

std::shared_ptr<filling> engine::take_batch() {
  guard held(core_);
  std::shared_ptr<filling> taken = batches_.take(shards_.must_forget(), core_.now_ns());
  if (taken == nullptr) return nullptr;
  shards_.name_in(*taken);
  const auto now = std::chrono::floor<std::chrono::seconds>(clock_.now());
  if (now - forgot_at_ >= forgets_every && !taken->data.empty()) {
    forgot_at_ = now;
    taken->data.forget_before = now - std::chrono::ceil<std::chrono::seconds>(chosen_.remember);
  }
  return taken;
}

void engine::stored(filling& taken) {
  std::vector<record_ref> told;
  {
    guard held(core_);
    batches_.stored(taken);
    health_.batch_stored();
    if (!taken.data.empty()) numbers_.count_commit(taken.turns, core_.now_ns() - taken.began_ns);
    inbox_.handled(taken.data.handled);
    numbers_.counts.turns += taken.turns;
    for (const settlement& settlement : taken.settlements) {
      inbox_.leave(*settlement.message);
      end_wait(*settlement.message);
      known_.remove(settlement.message);
    }
    if (!taken.asks_elsewhere.empty()) need_cycle_looks();
    for (const record_ref& one : taken.asks_elsewhere) outgoing_.begin_ask(one);
    for (const record_ref& message : taken.delivered) {
      if (!shards_.is_open(message->what.shard)) continue;  // another node will read it
      if (!inbox_.has_backlog() && inbox_.is_full()) {
        inbox_.begin_backlog(message->what.order - 1);
        hold_all();
      }
      if (message->is(message_place::outbox)) {
        inbox_.has_backlog() ? mailboxes_.leave_out(message) : outgoing_.post_elsewhere(message);
        continue;
      }
      activation& actor = mailboxes_.actor_of(*message->kind, message->what.to.key);
      inbox_.has_backlog() || actor.refused ? mailboxes_.leave_out(message)
                                            : mailboxes_.enqueue(message, actor);
    }
    // Those that were due before they were stored.
    for (const stored_reminder& reminder : taken.data.reminders) reminders_.plan(reminder.due);
    numbers_.counts.reminders += taken.data.fired_reminders.size();
    for (const batch::fired_reminder& one : taken.data.fired_reminders) reminders_.stored(one);
    if (inbox_.has_backlog()) core_.need_inbox();
    actors_.make_room(0, batches_.stored());
  }
  taken.end_spans(nullptr);
  for (const record_ref& message : taken.posted) give_all(message->on_stored, {});
  for (settlement& settlement : taken.settlements) {
    // A post that was sent while an ask of the same id was being handled is stored with its turn.
    if (settlement.error != nullptr && settlement.message->what.from == origin::ask) {
      fail_all(settlement.message->on_stored, settlement.error);
    } else {
      give_all(settlement.message->on_stored, {});
    }
    if (settlement.error != nullptr) {
      fail_all(settlement.message->answer, settlement.error);
    } else {
      give_all(settlement.message->answer, settlement.value);
    }
  }
}

// The batch was not stored, or nobody knows. A database that says soon whether it was made costs no
// caller an error; for longer nobody waits.
task<> engine::recover(std::shared_ptr<filling> failed, std::exception_ptr why) {
  milliseconds pause = core_.away_first();
  bool unknown = is_unknown(why), is_forgotten = false;
  const std::int64_t began_ns = core_.now_ns();
  while (unknown) {
    std::optional<std::uint64_t> last;
    try {
      const auto asks = [this] { return storage_->last_batch(); };
      const milliseconds left = waits_for_outcome - spent_since(began_ns);
      auto looks = is_forgotten ? asks() : with_deadline(std::max(left, milliseconds(1)), asks);
      last = co_await std::move(looks);
    } catch (const store_taken&) {
      why = std::current_exception();
      break;
    } catch (...) {
    }
    if (last && is_forgotten) {
      end_doubt(*failed, *last >= failed->data.number);
      co_return;
    }
    if (last && *last >= failed->data.number) {
      stored(*failed);
      co_return;
    }
    if (last) break;
    if (!is_forgotten && spent_since(began_ns) >= waits_for_outcome) {
      is_forgotten = true;
      forgetting_.forget_all(*failed, why, true);
    }
    // Nobody waits for a store that has forgotten all: it does not keep the program alive.
    if (is_forgotten) {
      co_await sleep_for(pause).weak();
    } else {
      co_await sleep_for(pause);
    }
    pause = std::min(2 * pause, core_.pause_max());
  }
  forgetting_.forget_all(*failed, why, false);
  if (is_moved(why)) {
    guard held(core_);
    core_.need_inbox();
  } else if (!is_taken(why)) {
    try_again_later();
  }
}

milliseconds engine::spent_since(std::int64_t began_ns) const {
  return std::chrono::floor<milliseconds>(std::chrono::nanoseconds(core_.now_ns() - began_ns));
}

// The database has said whether the batch was stored. All is read anew, for callers were told that
// nobody knows.
void engine::end_doubt(const filling& failed, bool is_stored) {
  guard held(core_);
  health_.end_doubt();
  is_stored ? batches_.stored(failed) : batches_.not_stored();
  if (health_.is_taken()) return;
  if (is_stored) numbers_.counts.turns += failed.turns;
  // What was read before says nothing of what is stored.
  inbox_.begin_round();
  inbox_.read_from_begin();
  reminders_.plan_after(milliseconds(0));
  core_.need_inbox();
}

// Meanwhile messages fail at once. The timer keeps no program alive.
void engine::try_again_later() {
  guard held(core_);
  const std::weak_ptr<engine> self = weak_from_this();
  const auto again = [self] {
    const std::shared_ptr<engine> alive = self.lock();
    if (alive == nullptr) return;
    guard at_work(alive->core_);
    if (alive->health_.try_again()) alive->core_.need_inbox();
  };
  const outside_calls none;
  away_timer_ =
      on_.after(health_.next_pause(core_.away_first(), core_.pause_max()), again, {.weak = true});
}

task<> engine::read_pages(std::shared_ptr<engine> self) {
  for (;;) {
    std::uint64_t after = 0, generation = 0, stored_before = 0, round = 0;
    {
      guard held(self->core_);
      if (!self->health_.works() || !self->inbox_.may_read(self->batches_.stored())) {
        self->inbox_.pause_reading();
        co_return;
      }
      round = self->inbox_.round();
      after = self->inbox_.begin_page();
      generation = self->generation_;
      stored_before = self->batches_.stored();
    }
    std::vector<stored_message> page;
    std::exception_ptr failed;
    try {
      auto reads = self->storage_->inbox(after, page_messages);
      page = co_await std::move(reads);
    } catch (...) {
      failed = std::current_exception();
    }
    guard held(self->core_);
    if (failed != nullptr) {
      self->inbox_.pause_reading();
      self->health_.reading_failed(failed);
      held.unlock();
      if (!self->forgetting_.lost_to_another(failed)) self->try_again_later();
      co_return;
    }
    if (generation != self->generation_ || round != self->inbox_.round()) continue;
    if (page.empty() && stored_before == self->batches_.stored()) {
      // Otherwise the next batch that is stored starts it again.
      self->batches_.commits() ? self->inbox_.pause_reading() : self->end_backlog();
      co_return;
    }
    refusals told;
    self->take_page(std::move(page), told);
    held.unlock();
    for (auto& [answer, why] : told) fail_all(answer, why);
  }
}

// With the mutex held.
void engine::take_page(std::vector<stored_message> page, refusals& told) {
  for (stored_message& row : page) {
    if (inbox_.skips(row.order) || !shards_.is_open(row.shard)) continue;
    const kind_table* const kind = classes_.find(row.to.kind);
    if (kind == nullptr) continue;  // another program's
    const bool goes_elsewhere = shards_.is_divided() && row.shard != shards_.of(row.to);
    record_ref message = goes_elsewhere ? nullptr : known_.find(row.id);
    if (message != nullptr && message->is(message_place::looked_up) &&
        !is_same_call(message->what, row)) {
      intake_.drop_rival(message, told);
      message = nullptr;
    }
    if (message != nullptr) {
      if (message->is(message_place::here) || message->is(message_place::outbox)) continue;
      if (!message->is(message_place::left_out)) {
        message->again = true;
        message->move(message_place::here);
      }
    } else {
      message = std::make_shared<record>();
      message->again = true;
      if (row.named) known_.add(row.id, message);
    }
    const std::uint64_t order = row.order;
    message->what = std::move(row);
    message->kind = kind;
    message->method = classes::find_method(*kind, message->what.method, message->what.signature);
    message->stored_with = std::max<std::uint64_t>(batches_.stored(), 1);
    message->failures = message->what.failures;
    inbox_.hold(order);
    if (goes_elsewhere) message->move(message_place::outbox);
    goes_elsewhere ? outgoing_.post_elsewhere(message)
                   : mailboxes_.enqueue(message, mailboxes_.actor_of(*kind, message->what.to.key));
  }
}

// With the mutex held. What was expected in the inbox and was not there has been handled meanwhile.
void engine::end_backlog() {
  inbox_.end_reading();
  std::vector<record_ref> missed;
  for (const auto& [id, message] : known_) {
    if (message->is(message_place::left_out)) missed.push_back(message);
  }
  for (const record_ref& message : missed) {
    inbox_.set_left_out(*message, false);
    message->move(message_place::looked_up);
    intake_.begin_look_up(message);
  }
}

// What is in memory is not read from the inbox again.
void engine::hold_all() {
  for (const auto& [name, actor] : actors_) {
    // A handler of an older generation counts for nothing: its message is read, and handled again.
    if (actor->handles != nullptr && actor->generation == generation_)
      inbox_.hold(actor->handles->what.order);
    for (const record_ref& message : actor->waits) inbox_.hold(message->what.order);
  }
  outboxes_.for_each([this](const record_ref& post) { inbox_.hold(post->what.order); });
  if (batches_.filled() == nullptr) return;
  for (const settlement& settlement : batches_.filled()->settlements)
    inbox_.hold(settlement.message->what.order);
}

}  // namespace troupe::durable::parts
