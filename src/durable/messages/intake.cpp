#include "durable/messages/intake.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "durable/core/exception_text.hpp"
#include "durable/memory/nested_asks.hpp"

namespace troupe::durable::parts {
namespace {

std::exception_ptr mismatch_of(const stored_message& message) {
  return std::make_exception_ptr(id_mismatch(
      "troupe: durable: the id of this message to " + message.to.kind + "::" + message.method +
      " was used before for another method or other arguments of " +
      "the same actor; nothing was done. Give each message an id of its own"));
}

bool is_mismatch(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const id_mismatch&) {
    return true;
  } catch (...) {
    return false;
  }
}

void repeat_answer(const stored_answer& stored, std::unique_ptr<answer_to>& to) {
  if (!stored.failed) return give_all(to, stored.value);
  const auto* const text = reinterpret_cast<const char*>(stored.value.data());
  fail_all(to, std::make_exception_ptr(
                   handler_failed(stored.error_type, std::string(text, stored.value.size()))));
}

// An answer as its bytes.
class bytes_answer final : public answer_to {
 public:
  future<bytes> get_future() { return answer_.get_future(); }
  void give(std::span<const std::byte> value) noexcept override {
    try {
      answer_.set_value(bytes(value.begin(), value.end()));
    } catch (...) {
      answer_.set_exception(std::current_exception());
    }
  }
  void fail(const std::exception_ptr& why) noexcept override { answer_.set_exception(why); }

 private:
  promise<bytes> answer_;
};

}  // namespace

void intake::send(request request) noexcept {
  record_ref message;
  std::unique_ptr<answer_to> answer;
  try {
    answer = std::move(request.answer);
    message = core_.make_record(request);
    message->row.named = !request.id.is_none();
    // Senders may use one id, of an order for instance, for messages to several actors.
    message->row.id =
        message->row.named
            ? request.id.part(message_id::of(message->kind->name + '\n' + message->row.to.key).low)
            : message_id::random();
    message->row.from = request.is_post ? origin::post : origin::ask;
    (request.is_post ? message->on_stored : message->answer) = std::move(answer);
    accept(message, false);
  } catch (...) {
    if (answer == nullptr && message != nullptr)
      answer = std::move(request.is_post ? message->on_stored : message->answer);
    if (answer != nullptr) answer->fail(std::current_exception());
  }
}

future<bytes> intake::deliver(stored_message received) {
  auto answer = std::make_unique<bytes_answer>();
  future<bytes> later = answer->get_future();
  std::unique_ptr<answer_to> told = std::move(answer);
  const auto message = new_record();
  try {
    message->kind = core_.classes.find(received.to.kind);
    if (message->kind == nullptr)
      throw unknown_method("troupe: durable: this node has no class " + received.to.kind);
    core_.check_name(*message->kind, received.to.key);
    message->method = classes::find_method(*message->kind, received.method, received.signature);
    message->row = std::move(received);
    message->row.shard = shards_.of(message->row.to);
    message->row.order = 0;
    message->row.failures = 0;
    // Its handler may have asked others where the asker's node also had the actor, and its turn may
    // not have been stored.
    message->again = message->row.from == origin::nested;
    message->trace = tasks::context_ref::current_trace();
    (message->row.from == origin::post ? message->on_stored : message->answer) = std::move(told);
    accept(message, true);
  } catch (...) {
    if (told == nullptr)
      told = std::move(message->row.from == origin::post ? message->on_stored : message->answer);
    if (told != nullptr) told->fail(std::current_exception());
  }
  return later;
}

void intake::check_room() const {
  health_.check();
  if (inbox_.is_full())
    throw store_full("troupe: durable: " + std::to_string(inbox_.waiting()) + " messages of " +
                     std::to_string(inbox_.waiting_bytes()) +
                     " bytes wait already; try again later, or raise options::waiting_max or "
                     "waiting_bytes_max");
}

// In a cluster the message of a program goes to the node that acts for its receiver, and the
// message of another node is refused.
void intake::accept(const record_ref& message, bool came_from_node) {
  std::unique_ptr<answer_to> stored;
  {
    guard held(core_);
    if (!shards_.is_open(message->row.shard)) {
      if (came_from_node)
        throw shard_moved({message->row.shard}, "troupe: durable: the actor has moved");
      return core_.start(
          [&message, this](engine_ref keeps) { return pass_on(std::move(keeps), message); });
    }
    check_room();
    if (!message->row.named) return mailboxes_.take_in(message);
    if (has_rival(*message)) {
      inbox_.count(*message);
      return core_.start([&message, came_from_node, this](engine_ref keeps) {
        return accept_later(std::move(keeps), message, came_from_node);
      });
    }
    if (!joins(*message, stored)) {
      known_.add(message->row.id, message);
      message->move(message_place::looked_up);
      inbox_.count(*message);
      try {
        begin_look_up(message);
      } catch (...) {
        known_.remove(message);
        inbox_.leave(*message);
        throw;
      }
    }
  }
  give_all(stored, {});
}

// The program's own message to an actor of another node.
task<> intake::pass_on(engine_ref, record_ref message) {
  std::exception_ptr failed;
  bytes value;
  try {
    stored_message sent = message->row;
    auto passes = shards_.scope().forward(std::move(sent));
    value = co_await std::move(passes);
  } catch (...) {
    failed = std::current_exception();
  }
  auto& told = message->row.from == origin::post ? message->on_stored : message->answer;
  failed != nullptr ? fail_all(told, failed) : give_all(told, value);
}

// Whether another message has the same id, of which it is not known yet whether the id is its own.
bool intake::has_rival(const record& message) const noexcept {
  const record_ref known = known_.find(message.row.id);
  return known != nullptr && known->is(message_place::looked_up) &&
         !is_same_call(known->row, message.row);
}

void intake::check_identity(const record& message) const {
  const record_ref known = known_.find(message.row.id);
  if (known != nullptr && !is_same_call(known->row, message.row))
    std::rethrow_exception(mismatch_of(message.row));
}

// Waits for about as long as the rival needs to find out whether the id is its own.
task<> intake::accept_later(engine_ref, record_ref message, bool came_from_node) {
  std::exception_ptr failed;
  try {
    auto finds = core_.storage->find(message->row.id);
    static_cast<void>(co_await std::move(finds));
    {
      guard held(core_);
      inbox_.leave(*message);
    }
    accept(message, came_from_node);
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed == nullptr) co_return;
  {
    guard held(core_);
    inbox_.leave(*message);
  }
  forgetting_.lost_to_another(failed);
  fail_all(message->answer, failed);
  fail_all(message->on_stored, failed);
}

bool intake::joins(record& message, std::unique_ptr<answer_to>& stored) {
  const record_ref known = known_.find(message.row.id);
  if (known == nullptr) return false;
  check_identity(message);
  record& first = *known;
  if (first.is(message_place::elsewhere) && shards_.is_here(first.row.shard)) bring_here(known);
  if (message.answer != nullptr) {
    message.answer->next = std::move(first.answer);
    first.answer = std::move(message.answer);
  }
  if (message.on_stored == nullptr) return true;
  if (first.stored_with != 0 && batches_.is_stored(first.stored_with)) {
    stored = std::move(message.on_stored);
  } else {
    message.on_stored->next = std::move(first.on_stored);
    first.on_stored = std::move(message.on_stored);
    // No caller has waited for the message to come into the inbox so far.
    if (batches_.is_open(first.stored_with) && first.on_stored->next == nullptr)
      batches_.open().posted.push_back(known);
  }
  return true;
}

void intake::begin_look_up(const record_ref& message) {
  core_.start([&message, this](engine_ref keeps) { return look_up(std::move(keeps), message); });
}

task<> intake::look_up(engine_ref, record_ref message) {
  std::exception_ptr failed;
  found_message found;
  try {
    auto finds = core_.storage->find(message->row.id);
    found = co_await std::move(finds);
  } catch (...) {
    failed = std::current_exception();
  }
  std::unique_ptr<answer_to> answer, on_stored;
  if (failed != nullptr) forgetting_.lost_to_another(failed);
  {
    guard held(core_);
    // Otherwise it was forgotten meanwhile, and its callers know; or it was read from the inbox.
    if (!known_.has(message) || !message->is(message_place::looked_up)) co_return;
    message->move(message_place::here);
    if (failed == nullptr && !found.call.fits(call_identity::of(message->row)))
      failed = mismatch_of(message->row);
    if (failed == nullptr && !found.answer) {
      if (message->unheard) {
        // The requested work may have been done, and the answer have been removed meanwhile.
        failed = std::make_exception_ptr(
            usage_error("troupe: durable: the handler has ended without this answer"));
      } else if (!core_.may_begin(*message)) {
        failed = std::make_exception_ptr(
            shard_moved({message->row.shard}, "troupe: durable: the actor has moved"));
      } else if (!found.in_inbox) {
        try {
          health_.check();
          mailboxes_.take_in(message);
          co_return;
        } catch (...) {
          failed = std::current_exception();
        }
      } else if (inbox_.has_backlog() && message->answer != nullptr) {
        inbox_.set_left_out(*message, true);  // its callers wait until it is read
        inbox_.count(*message);
        message->again = true;
        on_stored = std::move(message->on_stored);
      } else {
        if (message->answer != nullptr)
          failed = std::make_exception_ptr(
              store_full("troupe: durable: this message waits in the inbox of the store, and is "
                         "not in memory; ask for its answer later"));
      }
    }
    if (!message->is(message_place::left_out)) {
      known_.remove(message);
      inbox_.leave(*message);
      const bool passes = failed != nullptr && !is_mismatch(failed);
      if (passes && message->asker != nullptr && !message->unheard) message->asker->gives_up = true;
      end_wait(*message);
      answer = std::move(message->answer);
      on_stored = std::move(message->on_stored);
    }
    core_.need_inbox();
  }
  if (failed != nullptr) {
    fail_all(answer, failed);
    fail_all(on_stored, failed);
  } else {
    give_all(on_stored, {});
    if (found.answer) repeat_answer(*found.answer, answer);
  }
}

void intake::drop_rival(const record_ref& message, refusals& told) {
  known_.remove(message);
  inbox_.leave(*message);
  end_wait(*message);
  const std::exception_ptr why = mismatch_of(message->row);
  told.emplace_back(std::move(message->answer), why);
  told.emplace_back(std::move(message->on_stored), why);
}

// This node has got the actor that is asked; the one that had it may have answered.
void intake::bring_here(const record_ref& message) {
  message->move(message_place::here);
  message->move(message_place::looked_up);
  message->again = true;
  begin_look_up(message);
}

}  // namespace troupe::durable::parts
