#include "durable/engine/shard_moves.hpp"

#include <algorithm>
#include <utility>

#include "durable/core/exception_text.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

std::exception_ptr has_moved(std::vector<std::uint32_t> shards = {}) {
  return std::make_exception_ptr(shard_moved(
      std::move(shards), "troupe: durable: another node of the cluster acts for this actor now"));
}

}  // namespace

void shard_moves::gained(const std::vector<held_shard>& shards) {
  guard held(core_);
  lose(shards_.gain(shards));
  if (!shards_.begin_taking()) return;
  core_.start([this](engine_ref keeps) { return take_over(std::move(keeps)); });
}

// Numbers of messages grow, whoever gives them. They are therefore reserved after the shards were
// gained, when their former owners can store nothing any more.
task<> shard_moves::take_over(engine_ref) {
  milliseconds pause{0};
  for (;;) {
    if (pause.count() > 0) co_await sleep_for(pause);
    {
      guard held(core_);
      if (!shards_.take_next()) co_return;
    }
    bool failed = false;
    std::uint64_t first = 0;
    try {
      auto reserves = core_.storage->reserve_orders();
      first = co_await std::move(reserves);
    } catch (...) {
      failed = true;
    }
    guard held(core_);
    // Lost shards are forgotten before they may come back.
    pause = failed || shards_.must_forget() ? core_.longer(pause) : milliseconds(0);
    if (pause.count() == 0) take(first);
  }
}

// With the mutex held. The inbox is read from its begin, except for the messages in memory, as soon
// as all batches are stored whose messages have smaller numbers.
void shard_moves::take(std::uint64_t first_order) {
  shards_.take();
  forgetting_.drop({});
  inbox_.go_on_after(first_order);
  inbox_reader_.hold_all();
  inbox_.begin_round();
  inbox_.read_from_begin(batches_.newest());
  reminders_.plan_after(milliseconds(0));
  core_.need_inbox();
}

void shard_moves::lost(const std::vector<std::uint32_t>& shards) {
  guard held(core_);
  lose(shards_.lose(shards));
}

// With the mutex held. If something of them is in memory, all is forgotten, as when a transaction
// fails: the changes cannot be separated by shard.
void shard_moves::lose(const shard_set& lost) {
  if (lost.none()) return;
  if ((working() & lost).any()) {
    shards_.must_forget(true);
    core_.need_commit();
  }
  forgetting_.drop(lost);
}

// With the mutex held. The shards of which something begins here, runs, or waits to be stored.
shard_set shard_moves::working() const {
  shard_set all = batches_.touched();
  for (const auto& [name, actor] : actors_) {
    if (actor->runs || !actor->waits.empty() || actor->asks != 0 || actor->asked != 0 ||
        actor->changed_with > batches_.stored())
      all.set(actor->shard);
  }
  for (const auto& [id, message] : known_) {
    if (message->is(message_place::looked_up) || message->is(message_place::left_out))
      all.set(message->row.shard);
  }
  outboxes_.for_each([&all](const record_ref& post) { all.set(post->row.shard); });
  return all;
}

std::vector<held_shard> shard_moves::hand_over(const std::vector<held_shard>& shards, bool closes) {
  std::vector<held_shard> done;
  refusals told;
  {
    guard held(core_);
    // The others have not begun here, or were lost, and have perhaps come back.
    const shard_set leaving = shards_.held_of(shards);
    if (closes) {
      shards_.drain(leaving);
      put_off(leaving, told);
    }
    const shard_set busy = working() & leaving;
    for (const held_shard& given : shards) {
      if (busy[given.shard]) continue;
      done.push_back(given);
      shards_.give_away(given);
    }
    forgetting_.drop(leaving & ~busy);
  }
  for (auto& [answer, why] : told) fail_all(answer, why);
  return done;
}

// With the mutex held. Messages whose handlers have not begun begin on the shards' next node.
void shard_moves::put_off(const shard_set& leaving, refusals& told) {
  for (const auto& [name, actor] : actors_) {
    if (!leaving[actor->shard]) continue;
    message_queue stay;
    while (const record_ref message = actor->waits.pop_front()) {
      if (message->asker != nullptr) {
        stay.push_back(message);
        continue;
      }
      put_off(*message, told);
      known_.remove(message);
    }
    actor->waits = std::move(stay);
  }
  known_.remove_if([&](record& message) {
    if (!leaving[message.row.shard] || !message.is(message_place::left_out) ||
        message.asker != nullptr)
      return false;
    put_off(message, told);
    return true;
  });
  outboxes_.remove_if([&](const record_ref& post) {
    const bool goes = leaving[post->row.shard];
    if (goes) inbox_.leave(*post);
    return goes;
  });
}

void shard_moves::put_off(record& message, refusals& told) {
  std::exception_ptr why = has_moved({message.row.shard});
  if (message.stored_with != 0) why = with_unknown_effect(why);
  if (message.answer != nullptr) told.emplace_back(std::move(message.answer), why);
  // Otherwise its waiters are notified when the batch is stored.
  if (message.stored_with == 0 && message.on_stored != nullptr)
    told.emplace_back(std::move(message.on_stored), why);
  inbox_.leave(message);
}

// Why the batch is not to be stored; null: it may be.
std::exception_ptr shard_moves::refusal_of(const filling& taken) {
  if (!shards_.is_divided()) return nullptr;
  guard held(core_);
  if (shards_.must_forget()) return has_moved();
  if (taken.needs_transaction()) return nullptr;
  std::vector<std::uint32_t> moved = shards_.ended_of(taken);
  return moved.empty() ? nullptr : has_moved(std::move(moved));
}

}  // namespace troupe::durable::parts
