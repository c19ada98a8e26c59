#include "durable/messages/outgoing.hpp"

#include <optional>
#include <utility>

#include "base/invariant.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/memory/nested_asks.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

}  // namespace

// Messages of one actor to another stay in their order: as long as some of them are on their way
// over an outbox, or may be among those not read, the others follow them.
bool outgoing::goes_directly(const record& message, const activation& sender) const {
  const std::uint32_t shard = message.row.shard;
  if (!shards_.is_divided() || shard == sender.shard) return true;
  return shards_.is_open(shard) && !inbox_.has_backlog() && !outboxes_.has(message.row.to);
}

void outgoing::post_elsewhere(const record_ref& message) {
  inbox_.count(*message);
  const std::shared_ptr<outbox> added = outboxes_.add(message);
  if (added == nullptr) return;
  core_.start([&added, this](engine_ref keeps) {
    return empty_outbox(std::move(keeps), added, core_.generation);
  });
}

// Sends one message after the other.
task<> outgoing::empty_outbox(engine_ref, std::shared_ptr<outbox> outbox,
                              std::uint64_t generation) {
  milliseconds pause{0};
  record_ref message;
  bool is_for_here = false;
  while (next_of(*outbox, generation, message, is_for_here)) {
    bool failed = false;
    std::optional<handler_failed> refused_for_good;
    try {
      stored_message sent = message->row;
      sent.named = true;
      if (is_for_here) {
        auto arrives = intake_.deliver(std::move(sent));
        co_await std::move(arrives);
      } else {
        auto passes = shards_.scope().forward(std::move(sent));
        co_await std::move(passes);
      }
    } catch (const id_mismatch& mismatch) {
      refused_for_good.emplace("troupe::durable::id_mismatch", mismatch.what());
    } catch (...) {
      failed = true;
    }
    if (failed) {
      pause = core_.longer(pause);
      co_await sleep_for(pause);
    } else {
      pause = milliseconds(0);
      guard held(core_);
      if (generation != core_.generation) continue;
      if (refused_for_good) core_.make_dead_letter(message, *refused_for_good);
      sent_on(*outbox, message);
    }
  }
}

// False: the outbox is empty, or was forgotten.
bool outgoing::next_of(outbox& from, std::uint64_t generation, record_ref& message,
                       bool& is_for_here) {
  guard held(core_);
  if (generation != core_.generation) return false;
  message = outboxes_.next(from);
  if (message == nullptr) return false;
  TROUPE_INVARIANT(message->stored_with != 0 && batches_.is_stored(message->stored_with), "S2");
  is_for_here = shards_.is_open(shards_.of(message->row.to));
  return true;
}

// The receiver's node has stored it.
void outgoing::sent_on(outbox& from, const record_ref& message) {
  if (!outboxes_.sent(from, message)) return;
  core_.touch(message->row.shard);
  batches_.leave_inbox(*message, false);
  batches_.open().settlements.push_back({message, {}, nullptr});
  core_.need_commit();
}

void outgoing::begin_ask(const record_ref& message) {
  core_.start(
      [&message, this](engine_ref keeps) { return ask_elsewhere(std::move(keeps), message); });
}

// The handler of another actor waits. Its message is stored.
task<> outgoing::ask_elsewhere(engine_ref, record_ref message) {
  milliseconds pause{0};
  std::exception_ptr failed;
  bytes value;
  while (still_asks(message)) {
    bool is_answered = true;
    try {
      stored_message sent = message->row;
      sent.named = true;
      auto asks = shards_.scope().forward(std::move(sent));
      value = co_await std::move(asks);
    } catch (const handler_failed&) {
      failed = std::current_exception();
    } catch (const unknown_method&) {
      failed = std::current_exception();
    } catch (const deadlock&) {
      failed = std::current_exception();
    } catch (const id_mismatch&) {
      failed = std::current_exception();
    } catch (...) {
      is_answered = false;
    }
    if (is_answered) {
      end_ask(message, failed, value);
      co_return;
    }
    pause = core_.longer(pause);
    co_await sleep_for(pause);
  }
}

// False: no handler waits any more, or the asked one is here now.
bool outgoing::still_asks(const record_ref& message) {
  {
    guard held(core_);
    if (!known_.has(message)) return false;
    if (!message->is(message_place::elsewhere)) return false;  // it was read from the inbox
    if (!message->unheard) {
      if (!shards_.is_here(message->row.shard)) return true;
      intake_.bring_here(message);
      return false;
    }
  }
  end_ask(message,
          std::make_exception_ptr(
              usage_error("troupe: durable: the handler has ended without this answer")),
          {});
  return false;
}

void outgoing::end_ask(const record_ref& message, const std::exception_ptr& failed,
                       const bytes& value) {
  std::unique_ptr<answer_to> answer;
  {
    guard held(core_);
    if (!known_.has(message) || !message->is(message_place::elsewhere)) return;
    known_.remove(message);
    inbox_.leave(*message);
    end_wait(*message);
    answer = std::move(message->answer);
  }
  failed != nullptr ? fail_all(answer, failed) : give_all(answer, value);
}

}  // namespace troupe::durable::parts
