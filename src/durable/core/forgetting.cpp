#include "durable/core/forgetting.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "durable/core/exception_text.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/memory/nested_asks.hpp"

namespace troupe::durable::parts {

void forgetting::forget_all(filling& failed, const std::exception_ptr& why, bool in_doubt) {
  struct told {
    std::unique_ptr<answer_to> answer, on_stored;
    bool stays = false;
    bool may_be_done = false;
  };
  std::vector<told> all;
  std::shared_ptr<filling> dropped;
  const std::exception_ptr later = with_unknown_effect(why);
  const std::exception_ptr not_done = is_unknown(why) ? without_effect(why) : why;
  {
    guard held(core_);
    ++core_.generation;
    ++numbers_.counts.failed_commits;
    health_.batch_failed(in_doubt        ? availability::state::in_doubt
                         : is_taken(why) ? availability::state::taken
                         : is_moved(why) ? availability::state::works
                                         : availability::state::away,
                         not_done);
    const std::uint64_t failed_number = failed.data.number;
    const auto add = [&](const record_ref& message, bool is_in_batch = false) {
      end_wait(*message);
      if (message->is(message_place::left_out)) message->move(message_place::here);
      all.push_back({std::move(message->answer), std::move(message->on_stored),
                     message->stored_with != 0 && message->stored_with < failed_number,
                     in_doubt && (is_in_batch || message->stored_with == failed_number)});
    };
    const auto add_batch = [&](filling& batch, bool is_failed) {
      for (const record_ref& post : batch.posted)
        all.push_back({nullptr, std::move(post->on_stored), false, in_doubt && is_failed});
      for (const settlement& settled : batch.settlements) add(settled.message, is_failed);
    };
    add_batch(failed, true);
    if (batches_.filled() != nullptr) add_batch(*batches_.filled(), false);
    for (const auto& [name, actor] : actors_) {
      for (const record_ref& message : actor->waits) add(message);
      actor->waits.clear();
      actor->refused = false;
      actor->changed_with = 0;
      if (!actor->runs) actors_.let_go(*actor);
    }
    for (const auto& [id, message] : known_) add(message);
    known_.clear();
    dropped = batches_.drop_open();
    inbox_.forget();
    reminders_.forget(!health_.is_taken());
    shards_.must_forget(false);
    if (!in_doubt) batches_.not_stored();
    outboxes_.clear();
    TROUPE_INVARIANT(
        std::ranges::all_of(actors_, [](const auto& each) { return each.second->waits.empty(); }),
        "E4");
    drop_moved(failed, why);
  }
  failed.end_spans(why);
  if (dropped != nullptr) dropped->end_spans(not_done);
  for (told& told : all) {
    const std::exception_ptr& done = told.may_be_done ? why : not_done;
    fail_all(told.on_stored, done);
    fail_all(told.answer, told.stays ? later : done);
  }
}

bool forgetting::lost_to_another(const std::exception_ptr& failed) {
  if (!is_taken(failed)) return false;
  filling none;
  forget_all(none, failed, false);
  return true;
}

void forgetting::drop(const shard_set& lost) {
  shards_.drop(lost);
  core_.storage->act_for(shards_.all_here());
  if (lost.none()) return;
  actors_.drop(lost);
}

// With the mutex held. The transaction of `failed` was refused.
void forgetting::drop_moved(const filling& failed, const std::exception_ptr& why) {
  shard_set lost;
  try {
    std::rethrow_exception(why);
  } catch (const shard_moved& moved) {
    for (const std::uint32_t shard : moved.shards()) lost.set(shard);
    // Some may have returned meanwhile, with another fence.
    lost &= shards_.held_of(failed.data.shards);
  } catch (...) {
  }
  if (lost.any()) drop(lost);
}

}  // namespace troupe::durable::parts
