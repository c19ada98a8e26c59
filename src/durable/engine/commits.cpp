#include "durable/engine/commits.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/invariant.hpp"
#include "durable/core/exception_text.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/memory/nested_asks.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

// Old answers are looked for so often.
constexpr std::chrono::seconds forgets_every{60};
// A batch waits for so many more turns of the workers, as long as actors have messages.
constexpr unsigned waits_for_turns = 6;
// How long callers wait for a database that may have made their commit.
constexpr milliseconds waits_for_outcome{1'000};

}  // namespace

// Stores one batch after the other until nothing is to be stored. Turns fill the next one while one
// is being stored.
task<> commits::store_all(engine_ref) {
  for (;;) {
    // Turns that are due now come into the batch, if they are not too many.
    co_await yield();
    for (unsigned more = 0; more < waits_for_turns && has_ready(); ++more) co_await yield();
    const std::shared_ptr<filling> taken = take_batch();
    if (taken == nullptr) co_return;
    std::exception_ptr failed = shard_moves_.refusal_of(*taken);
    if (failed == nullptr && taken->needs_transaction()) {
      try {
        auto commit = core_.storage->commit(std::shared_ptr<const batch>(taken, &taken->data));
        co_await std::move(commit);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    if (failed == nullptr) {
      stored(*taken);
    } else {
      auto recovers = recover(taken, failed);
      failed = nullptr;
      co_await std::move(recovers);
    }
  }
}

bool commits::has_ready() const {
  guard held(core_);
  return actors_.has_ready();
}

std::shared_ptr<filling> commits::take_batch() {
  guard held(core_);
  std::shared_ptr<filling> taken = batches_.take(shards_.must_forget(), core_.now_ns());
  if (taken == nullptr) return nullptr;
  shards_.name_in(*taken);
  const auto now = std::chrono::floor<std::chrono::seconds>(core_.clock.now());
  if (now - forgot_at_ >= forgets_every && !taken->data.empty()) {
    forgot_at_ = now;
    taken->data.forget_before =
        now - std::chrono::ceil<std::chrono::seconds>(core_.chosen.remember);
  }
  return taken;
}

void commits::stored(filling& taken) {
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
    if (!taken.asks_elsewhere.empty()) cycle_search_.need_looks();
    for (const record_ref& message : taken.asks_elsewhere) outgoing_.begin_ask(message);
    for (const record_ref& message : taken.delivered) {
      if (!shards_.is_open(message->row.shard)) continue;  // another node will read it
      if (!inbox_.has_backlog() && inbox_.is_full()) {
        inbox_.begin_backlog(message->row.order - 1);
        inbox_reader_.hold_all();
      }
      if (message->is(message_place::outbox)) {
        inbox_.has_backlog() ? mailboxes_.leave_out(message) : outgoing_.post_elsewhere(message);
        continue;
      }
      activation& actor = mailboxes_.actor_of(*message->kind, message->row.to.key);
      inbox_.has_backlog() || actor.refused ? mailboxes_.leave_out(message)
                                            : mailboxes_.enqueue(message, actor);
    }
    // Those that were due before they were stored.
    for (const stored_reminder& reminder : taken.data.reminders) reminders_.plan(reminder.due);
    numbers_.counts.reminders += taken.data.fired_reminders.size();
    for (const batch::fired_reminder& fired : taken.data.fired_reminders) reminders_.stored(fired);
    if (inbox_.has_backlog()) core_.need_inbox();
    actors_.make_room(0, batches_.stored());
    TROUPE_INVARIANT(batches_.is_stored(taken.data.number), "E3");
  }
  taken.end_spans(nullptr);
  for (const record_ref& message : taken.posted) give_all(message->on_stored, {});
  for (settlement& settlement : taken.settlements) {
    // A post that was sent while an ask of the same id was being handled is stored with its turn.
    if (settlement.error != nullptr && settlement.message->row.from == origin::ask) {
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

// The batch was not stored, or its outcome is unknown. A database that answers soon whether it was
// made costs no caller an error; no caller waits for longer.
task<> commits::recover(std::shared_ptr<filling> failed, std::exception_ptr why) {
  milliseconds pause = core_.away_first();
  bool unknown = is_unknown(why), is_forgotten = false;
  const std::int64_t began_ns = core_.now_ns();
  while (unknown) {
    std::optional<std::uint64_t> last;
    try {
      const auto asks = [this] { return core_.storage->last_batch(); };
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
    // No caller waits for a store that has forgotten all: it does not keep the program alive.
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
    inbox_reader_.try_again_later();
  }
}

milliseconds commits::spent_since(std::int64_t began_ns) const {
  return std::chrono::floor<milliseconds>(std::chrono::nanoseconds(core_.now_ns() - began_ns));
}

// The database has answered whether the batch was stored. All is read anew, since the callers'
// errors reported an unknown outcome.
void commits::end_doubt(const filling& failed, bool is_stored) {
  guard held(core_);
  health_.end_doubt();
  is_stored ? batches_.stored(failed) : batches_.not_stored();
  if (health_.is_taken()) return;
  if (is_stored) numbers_.counts.turns += failed.turns;
  // The data read before does not show the stored state.
  inbox_.begin_round();
  inbox_.read_from_begin();
  reminders_.plan_after(milliseconds(0));
  core_.need_inbox();
}

}  // namespace troupe::durable::parts
