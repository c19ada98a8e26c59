#include "durable/messages/inbox_reader.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "durable/memory/outside_calls.hpp"

namespace troupe::durable::parts {
namespace {

constexpr std::size_t page_messages = 256;

}  // namespace

task<> inbox_reader::read_all(engine_ref) {
  for (;;) {
    std::uint64_t after = 0, generation = 0, stored_before = 0, round = 0;
    {
      guard held(core_);
      if (!health_.works() || !inbox_.may_read(batches_.stored())) {
        inbox_.pause_reading();
        co_return;
      }
      round = inbox_.round();
      after = inbox_.begin_page();
      generation = core_.generation;
      stored_before = batches_.stored();
    }
    std::vector<stored_message> page;
    std::exception_ptr failed;
    try {
      auto reads = core_.storage->inbox(after, page_messages);
      page = co_await std::move(reads);
    } catch (...) {
      failed = std::current_exception();
    }
    guard held(core_);
    if (failed != nullptr) {
      inbox_.pause_reading();
      health_.reading_failed(failed);
      held.unlock();
      if (!forgetting_.lost_to_another(failed)) try_again_later();
      co_return;
    }
    if (generation != core_.generation || round != inbox_.round()) continue;
    if (page.empty() && stored_before == batches_.stored()) {
      // Otherwise the next batch that is stored starts it again.
      batches_.commits() ? inbox_.pause_reading() : end_backlog();
      co_return;
    }
    refusals told;
    take_page(std::move(page), told);
    held.unlock();
    for (auto& [answer, why] : told) fail_all(answer, why);
  }
}

void inbox_reader::take_page(std::vector<stored_message> page, refusals& told) {
  for (stored_message& row : page) {
    if (inbox_.skips(row.order) || !shards_.is_open(row.shard)) continue;
    const kind_table* const kind = core_.classes.find(row.to.kind);
    if (kind == nullptr) continue;  // another program's
    const bool goes_elsewhere = shards_.is_divided() && row.shard != shards_.of(row.to);
    record_ref message = goes_elsewhere ? nullptr : known_.find(row.id);
    if (message != nullptr && message->is(message_place::looked_up) &&
        !is_same_call(message->row, row)) {
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
      message = new_record();
      message->again = true;
      if (row.named) known_.add(row.id, message);
    }
    const std::uint64_t order = row.order;
    message->row = std::move(row);
    message->kind = kind;
    message->method = classes::find_method(*kind, message->row.method, message->row.signature);
    message->stored_with = std::max<std::uint64_t>(batches_.stored(), 1);
    message->failures = message->row.failures;
    inbox_.hold(order);
    if (goes_elsewhere) message->move(message_place::outbox);
    goes_elsewhere ? outgoing_.post_elsewhere(message)
                   : mailboxes_.enqueue(message, mailboxes_.actor_of(*kind, message->row.to.key));
  }
}

// Messages that were expected in the inbox and were not there have been handled meanwhile.
void inbox_reader::end_backlog() {
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

void inbox_reader::hold_all() {
  for (const auto& [name, actor] : actors_) {
    // A handler of an older generation counts for nothing: its message is read, and handled again.
    if (actor->handles != nullptr && actor->generation == core_.generation)
      inbox_.hold(actor->handles->row.order);
    for (const record_ref& message : actor->waits) inbox_.hold(message->row.order);
  }
  outboxes_.for_each([this](const record_ref& post) { inbox_.hold(post->row.order); });
  if (batches_.filled() == nullptr) return;
  for (const settlement& settlement : batches_.filled()->settlements)
    inbox_.hold(settlement.message->row.order);
}

// The timer keeps no program alive.
void inbox_reader::try_again_later() {
  guard held(core_);
  const auto again = [weak = std::weak_ptr<engine>(core_.upper_tasks.keep()), this] {
    const engine_ref alive = weak.lock();
    if (alive == nullptr) return;
    guard at_work(core_);
    if (health_.try_again()) core_.need_inbox();
  };
  const outside_calls none;
  away_timer_ = core_.on.after(health_.next_pause(core_.away_first(), core_.pause_max()), again,
                               {.weak = true});
}

}  // namespace troupe::durable::parts
