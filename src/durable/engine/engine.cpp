#include "durable/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "troupe/base/error.hpp"

namespace troupe::durable::parts {
engine::engine(runtime& on, std::unique_ptr<storage> storage, durable::options chosen,
               std::vector<kind_table> kinds, std::shared_ptr<shard_scope> scope)
    : core_(*this, on, std::move(storage), chosen, std::move(kinds), std::move(scope)) {}

engine::~engine() {
  idle_timer_.cancel();
  away_timer_.cancel();
}

task<> engine::open() {
  clock_.open();
  open_reminders();
  auto opens = storage_->open();
  opened_storage found = co_await std::move(opens);
  std::vector<class_shape> added = classes_.compare(found.classes, storage_->name());
  if (!added.empty()) {
    auto keeps = storage_->keep_classes(std::move(added));
    co_await std::move(keeps);
  }
  auto looks = storage_->reminders(1);
  std::vector<stored_reminder> first = co_await std::move(looks);
  show();
  guard held(core_);
  batches_.go_on_after(std::max<std::uint64_t>(found.last_batch, 1));
  inbox_.go_on_after(found.last_order);
  if (!shards_.is_divided() && found.last_order > 0) inbox_.begin_backlog();
  if (!first.empty()) reminders_.plan(first.front().due);
  core_.need_inbox();
  const std::weak_ptr<engine> self = weak_from_this();
  const auto look = [self] {
    const std::shared_ptr<engine> alive = self.lock();
    if (alive == nullptr) return;
    guard at_work(alive->core_);
    alive->actors_.put_away(alive->actors_.size(),
                            alive->core_.now_ns() - alive->chosen_.idle_max.count(),
                            alive->batches_.stored());
  };
  const outside_calls none;
  idle_timer_ = on_.every(
      std::max<std::chrono::nanoseconds>(chosen_.idle_max / 2, std::chrono::milliseconds(1)), look,
      {.weak = true});
}

void engine::check_key(const void* tag, std::string_view key) const {
  const kind_table* const kind = classes_.find(tag);
  if (kind == nullptr) return;
  if (shards_.is_divided()) shards_.scope().check_key(key);
  storage_->check_name(kind->name, key);
}

task<std::vector<std::string>> engine::keys(const void* tag, key_range range) const {
  storage& database = *storage_;
  return database.keys(classes_.find(tag)->name, std::move(range));
}

void engine::send(request what) noexcept {
  record_ref message;
  std::unique_ptr<answer_to> answer;
  try {
    answer = std::move(what.answer);
    message = core_.make_record(what);
    message->what.named = !what.id.is_none();
    // Senders may use one id, of an order for instance, for messages to several actors.
    message->what.id =
        message->what.named
            ? what.id.part(message_id::of(message->kind->name + '\n' + message->what.to.key).low)
            : message_id::random();
    message->what.from = what.is_post ? origin::post : origin::ask;
    (what.is_post ? message->on_stored : message->answer) = std::move(answer);
    accept(message, false);
  } catch (...) {
    if (answer == nullptr && message != nullptr)
      answer = std::move(what.is_post ? message->on_stored : message->answer);
    if (answer != nullptr) answer->fail(std::current_exception());
  }
}

void engine::check_room() const {
  health_.check();
  if (inbox_.is_full())
    throw store_full("troupe: durable: " + std::to_string(inbox_.waiting()) + " messages of " +
                     std::to_string(inbox_.waiting_bytes()) +
                     " bytes wait already; try again later, or raise options::waiting_max or "
                     "waiting_bytes_max");
}

// In a cluster the message of a program goes to the node that acts for its receiver, and that of
// another node is refused.
void engine::accept(const record_ref& message, bool came_from_node) {
  std::unique_ptr<answer_to> stored;
  {
    guard held(core_);
    if (!shards_.is_open(message->what.shard)) {
      if (came_from_node)
        throw shard_moved({message->what.shard}, "troupe: durable: the actor has moved");
      return core_.start(
          [&message](std::shared_ptr<engine> self) { return pass_on(std::move(self), message); });
    }
    check_room();
    if (!message->what.named) return mailboxes_.take_in(message);
    if (has_rival(*message)) {
      inbox_.count(*message);
      return core_.start([&message, came_from_node](std::shared_ptr<engine> self) {
        return accept_later(std::move(self), message, came_from_node);
      });
    }
    if (!joins(*message, stored)) {
      known_.add(message->what.id, message);
      message->move(message_place::looked_up);
      inbox_.count(*message);
      try {
        core_.start(
            [&message](std::shared_ptr<engine> self) { return look_up(std::move(self), message); });
      } catch (...) {
        known_.remove(message);
        inbox_.leave(*message);
        throw;
      }
    }
  }
  give_all(stored, {});
}

namespace {

std::exception_ptr mismatch_of(const stored_message& message) {
  return std::make_exception_ptr(id_mismatch(
      "troupe: durable: the id of this message to " + message.to.kind + "::" + message.method +
      " was used before for another method or other arguments of " +
      "the same actor; nothing was done. Give each message an id of its own"));
}

}  // namespace

// Whether another message has the same id, of which it is not known yet whether the id is its own.
bool engine::has_rival(const record& message) const noexcept {
  const record_ref known = known_.find(message.what.id);
  return known != nullptr && known->is(message_place::looked_up) &&
         !is_same_call(known->what, message.what);
}

// Throws id_mismatch if another message has the same id.
void engine::check_identity(const record& message) const {
  const record_ref known = known_.find(message.what.id);
  if (known != nullptr && !is_same_call(known->what, message.what))
    std::rethrow_exception(mismatch_of(message.what));
}

// Waits for about as long as the rival needs to find out whether the id is its own.
task<> engine::accept_later(std::shared_ptr<engine> self, record_ref message, bool came_from_node) {
  std::exception_ptr failed;
  try {
    auto finds = self->storage_->find(message->what.id);
    static_cast<void>(co_await std::move(finds));
    {
      guard held(self->core_);
      self->inbox_.leave(*message);
    }
    self->accept(message, came_from_node);
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed == nullptr) co_return;
  {
    guard held(self->core_);
    self->inbox_.leave(*message);
  }
  self->forgetting_.lost_to_another(failed);
  fail_all(message->answer, failed);
  fail_all(message->on_stored, failed);
}

// Returns true if the message is in memory already: then its callers wait for that one. `stored` is
// who is to be told at once.
bool engine::joins(record& message, std::unique_ptr<answer_to>& stored) {
  const record_ref known = known_.find(message.what.id);
  if (known == nullptr) return false;
  check_identity(message);
  record& first = *known;
  if (first.is(message_place::elsewhere) && shards_.is_here(first.what.shard)) bring_here(known);
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
    // Nobody waited for the message to come into the inbox so far.
    if (batches_.is_open(first.stored_with) && first.on_stored->next == nullptr)
      batches_.open().posted.push_back(known);
  }
  return true;
}

namespace {

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

}  // namespace

task<> engine::look_up(std::shared_ptr<engine> self, record_ref message) {
  std::exception_ptr failed;
  found_message found;
  try {
    auto finds = self->storage_->find(message->what.id);
    found = co_await std::move(finds);
  } catch (...) {
    failed = std::current_exception();
  }
  std::unique_ptr<answer_to> answer, on_stored;
  if (failed != nullptr) self->forgetting_.lost_to_another(failed);
  {
    guard held(self->core_);
    // Otherwise it was forgotten meanwhile, and its callers know; or it was read from the inbox.
    if (!self->known_.has(message) || !message->is(message_place::looked_up)) co_return;
    message->move(message_place::here);
    if (failed == nullptr && !found.call.fits(call_identity::of(message->what)))
      failed = mismatch_of(message->what);
    if (failed == nullptr && !found.answer) {
      if (message->unheard) {
        // What it asked for may have been done, and the answer have been removed meanwhile.
        failed = std::make_exception_ptr(
            usage_error("troupe: durable: the handler has ended without this answer"));
      } else if (!self->core_.may_begin(*message)) {
        failed = std::make_exception_ptr(
            shard_moved({message->what.shard}, "troupe: durable: the actor has moved"));
      } else if (!found.in_inbox) {
        try {
          self->health_.check();
          self->mailboxes_.take_in(message);
          co_return;
        } catch (...) {
          failed = std::current_exception();
        }
      } else if (self->inbox_.has_backlog() && message->answer != nullptr) {
        self->inbox_.set_left_out(*message, true);  // its callers wait until it is read
        self->inbox_.count(*message);
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
      self->known_.remove(message);
      self->inbox_.leave(*message);
      const bool passes = failed != nullptr && !is_mismatch(failed);
      if (passes && message->asker != nullptr && !message->unheard) message->asker->gives_up = true;
      end_wait(*message);
      answer = std::move(message->answer);
      on_stored = std::move(message->on_stored);
    }
    self->core_.need_inbox();
  }
  if (failed != nullptr) {
    fail_all(answer, failed);
    fail_all(on_stored, failed);
  } else {
    give_all(on_stored, {});
    if (found.answer) repeat_answer(*found.answer, answer);
  }
}

// With the mutex held. The row of the inbox with this id, which was read meanwhile, is of another
// message.
void engine::drop_rival(const record_ref& message, refused& told) {
  known_.remove(message);
  inbox_.leave(*message);
  end_wait(*message);
  const std::exception_ptr why = mismatch_of(message->what);
  told.emplace_back(std::move(message->answer), why);
  told.emplace_back(std::move(message->on_stored), why);
}

// The functions below are called with the mutex held.

// With the mutex held.
durable::counts engine::counts_now() const {
  durable::counts now = numbers_.counts;
  now.actors = actors_.size();
  now.put_away = actors_.put_away_so_far();
  now.waiting = inbox_.waiting();
  now.is_away = !health_.works();
  return now;
}

durable::counts engine::counts() const {
  std::lock_guard held(core_.mutex);
  return counts_now();
}

void engine::show() {
  const std::weak_ptr<const engine> self = weak_from_this();
  const auto collect = [self](observe::row_sink& to, const std::vector<std::string>& labels) {
    const std::shared_ptr<const engine> alive = self.lock();
    if (alive == nullptr) return;
    store_numbers now;
    {
      std::lock_guard held(alive->core_.mutex);
      now = alive->numbers_.with_commits(alive->counts_now());
    }
    now.add_to(to, labels);
  };
  shown_ = observing::components_of(on_)->add({"durable", "store", storage_->name(), collect});
}

void send(const std::shared_ptr<engine>& engine, request what) noexcept {
  engine->send(std::move(what));
}
void send_from(turn_state& from, request what) { from.owner.send_from(from, std::move(what)); }
void ask_from(turn_state& from, request what) noexcept {
  from.owner.ask_from(from, std::move(what));
}

}  // namespace troupe::durable::parts
