// The turns of durable actors: each handles one message, and adds its changes to the open batch.
#include <algorithm>
#include <utility>

#include "base/invariant.hpp"
#include "durable/core/exception_text.hpp"
#include "durable/engine/turns.hpp"
#include "durable/memory/nested_asks.hpp"
#include "durable/state/cycles.hpp"
#include "troupe/durable/turn.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::durable::parts {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds load_again_soon{1};
constexpr milliseconds load_again_first{50};
constexpr milliseconds load_again_last{10'000};
constexpr milliseconds retry_last{10'000};
constexpr unsigned messages_in_a_row = 64;  // of one actor
// Of a runner, before other tasks of its worker.
constexpr unsigned turns_in_a_row = 16;
constexpr std::int64_t in_a_row_max_ns = 100'000;

// A message that no handler of this program fits.
std::exception_ptr no_such_method(const record& message) {
  return std::make_exception_ptr(
      unknown_method("troupe: durable: " + message.row.to.kind + " of this program has no method " +
                     message.row.method + " with the parameters and the result of the message"));
}

}  // namespace

// The task of core_.need_runner(). An actor that has to wait, for its object, its handler or a
// pause, gets a task of its own.
task<> turns::run_ready(engine_ref) {
  using enum next_step::action;
  // A search of schedules chooses after each turn.
  const unsigned turns_at_once = core_.clock.is_simulated() ? 1 : turns_in_a_row;
  std::int64_t began_ns = core_.now_ns();
  std::exception_ptr failed;
  next_step next;
  for (unsigned turns = 1;; ++turns) {
    if (next.does != ends && !is_at_once(next)) {
      while (!leave_to_task(next)) co_await sleep_for(load_again_soon);
      next = {};
    }
    try {
      next = next.does == ends ? first_ready()
                               : handle_at_once(std::move(next), followed_by::any_ready);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed != nullptr) break;
    if (next.does == ends) co_return;
    if (turns % turns_at_once == 0 || next.chosen_ns - began_ns >= in_a_row_max_ns) {
      co_await yield();
      began_ns = core_.now_ns();
    }
  }
  // There was no memory for the effects of a turn: its actor handles nothing more until the store
  // is opened again. Another runner has to take the other actors.
  while (!end_runner()) co_await sleep_for(load_again_soon);
  std::rethrow_exception(failed);
}

// False: there is no memory for it.
bool turns::leave_to_task(const next_step& next) noexcept {
  try {
    core_.start([&next, this](engine_ref keeps) { return stay_with(std::move(keeps), next); });
    return true;
  } catch (...) {
    return false;
  }
}

// Handles the messages of this actor until none is left.
task<> turns::stay_with(engine_ref, next_step next) {
  activation& actor = *next.actor;
  unsigned in_a_row = 0;
  milliseconds waited{0};
  while (next.does != next_step::action::ends) {
    if (next.does == next_step::action::loads) {
      auto loads = load(actor, waited);
      waited = co_await std::move(loads);
      next = next_for(actor);
      continue;
    }
    if (next.does == next_step::action::pauses) {
      co_await sleep_for(next.pause);
      next = next_for(actor);
      continue;
    }
    if (++in_a_row % messages_in_a_row == 0) co_await yield();
    if (is_at_once(next)) {
      next = handle_at_once(std::move(next), followed_by::same_actor);
      continue;
    }
    turn_state state(*this, actor, std::move(next.message));
    turn current(state);
    const record& message = *state.handles;
    const tasks::context_ref span = begin_turn_span(message);
    std::exception_ptr failed;
    outcome given;
    bytes written;
    try {
      auto handler = message.method->start(actor.it.get(), current, message.row.arguments);
      auto running = in_trace(std::move(handler), context_of(message, span));
      given = co_await std::move(running);
      written = encoded(state, given);
    } catch (...) {
      failed = std::current_exception();
    }
    next = end_turn(state, span, failed, std::move(given), std::move(written),
                    followed_by::same_actor);
  }
}

// The handler is no coroutine, or there is none.
bool turns::is_at_once(const next_step& next) noexcept {
  return next.does == next_step::action::handles &&
         (next.message->method == nullptr || next.message->method->call != nullptr);
}

turns::next_step turns::handle_at_once(next_step now, followed_by then) {
  turn_state state(*this, *now.actor, std::move(now.message));
  turn current(state);
  const record& message = *state.handles;
  const tasks::context_ref span = begin_turn_span(message);
  std::exception_ptr failed;
  outcome given;
  bytes written;
  try {
    if (message.method == nullptr) std::rethrow_exception(no_such_method(message));
    const tasks::inside_context traced(context_of(message, span).get());
    given = message.method->call(state.actor.it.get(), current, message.row.arguments);
    written = encoded(state, given);
  } catch (...) {
    failed = std::current_exception();
  }
  return end_turn(state, span, failed, std::move(given), std::move(written), then);
}

turns::next_step turns::end_turn(turn_state& done, const tasks::context_ref& span,
                                 const std::exception_ptr& failed, outcome given, bytes state,
                                 followed_by then) {
  if (span.get() != nullptr) tasks::end_span(*span.get(), failed);
  return failed == nullptr ? finish(done, std::move(given), std::move(state), then)
                           : fail(done, failed, then);
}

turns::next_step turns::next_for(activation& actor) {
  guard held(core_);
  return choose_next(actor, core_.now_ns());
}

turns::next_step turns::first_ready() {
  guard held(core_);
  return choose_ready(core_.now_ns());
}

// The next step after a turn. With the mutex held, as the four functions below.
turns::next_step turns::choose_after(activation& actor, followed_by then) {
  const std::int64_t now_ns = core_.now_ns();
  if (then == followed_by::same_actor) return choose_next(actor, now_ns);
  // Other actors wait for some messages of this one at most.
  if (++actor.in_a_row >= messages_in_a_row && !actor.waits.empty() && actors_.has_ready()) {
    begin_choice(actor);
    actors_.queue_again(actor);
    return choose_ready(now_ns);
  }
  next_step next = choose_next(actor, now_ns);
  return next.does == next_step::action::ends ? choose_ready(now_ns) : next;
}

// The runner ends if no actor is ready.
turns::next_step turns::choose_ready(std::int64_t now_ns) {
  while (activation* const actor = actors_.take_ready()) {
    try {
      next_step next = choose_next(*actor, now_ns);
      if (next.does != next_step::action::ends) return next;
    } catch (...) {
      if (actor->runs) actors_.queue_again(*actor);
      throw;
    }
  }
  actors_.end_runner();
  return {};
}

// If nothing handles its messages any more, the actor may leave memory at once.
turns::next_step turns::choose_next(activation& actor, std::int64_t now_ns) {
  using enum next_step::action;
  begin_choice(actor);
  if (actor.waits.empty()) {
    actors_.end_run(actor, now_ns);
    actors_.make_room(0, batches_.stored());
    return {};
  }
  if (actor.it == nullptr) return {loads, &actor, nullptr, milliseconds(0), now_ns};
  actor.handles = actor.waits.pop_front();
  actor.gives_up = false;
  // The actor that was asked has not left memory since.
  TROUPE_INVARIANT(actor.handles->asker == nullptr || actor.handles->asked == nullptr ||
                       actor.handles->asked == &actor,
                   "actors.A2");
  TROUPE_INVARIANT(!health_.is_in_doubt(), "forgetting.E5");
  return {handles, &actor, actor.handles, milliseconds(0), now_ns};
}

turns::next_step turns::choose_after(activation& actor, followed_by then, milliseconds pause) {
  if (pause.count() == 0) return choose_after(actor, then);
  return {next_step::action::pauses, &actor, nullptr, pause, core_.now_ns()};
}

void turns::begin_choice(activation& actor) {
  actor.handles = nullptr;
  actor.waits_for.clear();
  if (actor.generation != core_.generation) actors_.let_go(actor);
}

// A runner ends early. False: it may not yet, since actors are ready, and no other runner can
// begin.
bool turns::end_runner() noexcept {
  guard held(core_);
  actors_.end_runner();
  if (!actors_.has_ready()) return true;
  try {
    core_.need_runner();
    return true;
  } catch (...) {
    actors_.begin_runner();
    return false;
  }
}

// Returns how long the next try to load waits, if this one has failed; else 0.
task<milliseconds> turns::load(activation& actor, milliseconds waited) {
  if (waited.count() > 0) co_await sleep_for(waited);
  std::uint64_t generation = 0;
  {
    guard held(core_);
    // All was forgotten while this waited. No caller needs the object any more, and the shard may
    // be another node's, which changes the stored state: the object must not outlast its way back.
    if (actor.waits.empty()) co_return milliseconds(0);
    // Turns of it are still being stored; or its shard was lost, and all will be forgotten.
    if (actor.changed_with > batches_.stored() || !shards_.is_here(actor.shard))
      co_return load_again_soon;
    TROUPE_INVARIANT(!batches_.has_changes_of(actor), "actors.A2");
    TROUPE_INVARIANT(!health_.is_in_doubt(), "forgetting.E5");
    generation = core_.generation;
    ++numbers_.counts.loads;
  }
  std::exception_ptr failed;
  bool for_good = false;
  try {
    auto loads = core_.storage->load({actor.kind.name, actor.key});
    std::optional<stored_state> found = co_await std::move(loads);
    loaded(actor, std::move(found), generation);
    co_return milliseconds(0);
  } catch (const database::error& of_the_database) {
    failed = std::current_exception();
    for_good = waited >= load_again_last && of_the_database.kind() == database::failure::corrupted;
  } catch (...) {
    failed = std::current_exception();
    for_good = true;
  }
  if (!forgetting_.lost_to_another(failed)) refuse_all(actor, failed, for_good);
  co_return std::clamp(2 * waited, load_again_first, load_again_last);
}

void turns::loaded(activation& actor, std::optional<stored_state> found, std::uint64_t generation) {
  object read = core_.classes.object_of(actor, found);
  bytes last = actor.kind.apply == nullptr ? actor.kind.write(read.get()) : bytes();
  guard held(core_);
  if (generation != core_.generation) return;
  TROUPE_INVARIANT(actor.changed_with <= batches_.stored(), "E2");
  TROUPE_INVARIANT(shards_.is_here(actor.shard) || shards_.must_forget(), "S3");
  actor.generation = generation;
  actor.it = std::move(read);
  actor.last = std::move(last);
  actor.events_in_snapshot = found ? found->number : 0;
  actor.events = found ? found->number + found->events.size() : 0;
}

// The object cannot be loaded. Messages whose callers wait fail, and leave the inbox if no handler
// has begun with them. Others stay in the inbox.
void turns::refuse_all(activation& actor, const std::exception_ptr& why, bool for_good) {
  std::vector<std::pair<std::unique_ptr<answer_to>, bool>> told;
  {
    guard held(core_);
    actor.refused = for_good;
    message_queue stay;
    while (const record_ref message = actor.waits.pop_front()) {
      const bool in_inbox = message->stored_with != 0;
      // A post that was acknowledged stays, whoever asks for its answer by its id.
      const bool leaves = message->answer != nullptr && message->row.from != origin::post &&
                          !(in_inbox && message->again);
      if (message->asker != nullptr && !message->unheard) message->asker->gives_up |= !for_good;
      end_wait(*message);
      if (leaves && in_inbox) {
        // Its caller gets the error when that is stored: until then it may still be handled.
        core_.touch(actor.shard);
        batches_.leave_inbox(*message, false);
        batches_.open().settlements.push_back({message, {}, why});
        core_.need_commit();
        continue;
      }
      told.emplace_back(std::move(message->answer), in_inbox);
      if (!leaves && !for_good) {
        stay.push_back(message);
        continue;
      }
      inbox_.leave(*message);
      known_.remove(message);
    }
    actor.waits = std::move(stay);
    core_.need_inbox();
  }
  for (auto& [answer, may_be_handled] : told)
    fail_all(answer, may_be_handled ? with_unknown_effect(why) : why);
}

// The part of the object that is to be stored after the turn; for a class with events it is empty,
// unless a snapshot is due.
bytes turns::encoded(turn_state& turn, const outcome& given) const {
  const activation& actor = turn.actor;
  core_.check_size(given.value.size(), "the answer has ");
  for (const bytes& event : given.events) core_.check_size(event.size(), "the event has ");
  if (actor.kind.apply != nullptr) {
    turn.has_applied = !given.events.empty();
    for (const bytes& event : given.events) actor.kind.apply(actor.it.get(), event);
    if (actor.events + given.events.size() <
        actor.events_in_snapshot + actor.kind.events_between_snapshots)
      return {};
  }
  bytes state = actor.kind.write(actor.it.get());
  core_.check_size(state.size(), "the state has ");
  return state;
}

// The object before the turn; null if it must be loaded. It calls the program's code.
object turns::before(const turn_state& turn) noexcept {
  if (turn.actor.kind.apply != nullptr) return turn.has_applied ? nullptr : turn.actor.it;
  try {
    return turn.actor.kind.read(turn.actor.kind.shapes.front().schema, turn.actor.last);
  } catch (...) {
    return nullptr;  // whoever loads it gets the error
  }
}

// The next step is chosen under the same lock.
turns::next_step turns::finish(turn_state& done, outcome given, bytes state, followed_by then) {
  guard held(core_);
  if (!core_.is_current(done)) {
    held.unlock();
    return give_up(done, then);
  }
  if (done.actor.gives_up) {
    held.unlock();
    return run_again(done, before(done), then);
  }
  TROUPE_INVARIANT(done.actor.handles == done.handles, "E1");
  done.actor.gave_up = 0;
  const record_ref& message = done.handles;
  filling& into = batches_.open();
  core_.touch_all(done);
  batches_.leave_inbox(*message, false);
  batches_.keep_state(done.actor, std::move(state), std::move(given.events));
  batches_.keep_reminders(done);
  end_asks(done);
  if ((message->row.from == origin::nested && !message->unheard) || message->row.named)
    batches_.keep_answer(*message, given.value, nullptr, core_.clock.now());
  ++into.turns;
  batches_.begin_commit_span(*message);
  into.settlements.push_back({message, std::move(given.value), nullptr});
  send_all(done);
  core_.need_commit();
  return choose_after(done.actor, then);
}

// The message stays, and is handled once more: the answers to its handler's asks are
// stored, or nothing was done.
turns::next_step turns::run_again(turn_state& done, object earlier, followed_by then) {
  const record_ref& message = done.handles;
  guard held(core_);
  if (!core_.is_current(done)) {
    held.unlock();
    return give_up(done, then);
  }
  std::swap(done.actor.it, earlier);
  message->again = true;
  ++numbers_.counts.retries;
  done.actor.waits.push_front(message);
  return choose_after(done.actor, then,
                      std::clamp(load_again_first * (1u << std::min(done.actor.gave_up++, 20u)),
                                 load_again_first, load_again_last));
}

// The message has ended: no handler needs the answers to its asks any more. In a cluster an ask
// may still be on its way from a node that had the actor before: its answer stays.
void turns::end_asks(turn_state& done) {
  TROUPE_INVARIANT(core_.is_current(done), "E4");
  record& message = *done.handles;
  if (!shards_.is_divided() ? done.has_asked || message.again
                            : done.has_asked && !message.again && !message.asked_elsewhere)
    batches_.open().data.ended.push_back(message.row.id);
  for (const record_ref& asked : message.asks) asked->unheard = true;
  message.asks.clear();
}

void turns::send_all(turn_state& done) {
  TROUPE_INVARIANT(core_.is_current(done), "E4");
  filling& into = batches_.open();
  for (record_ref& message : done.sent) {
    if (!outgoing_.goes_directly(*message, done.actor)) {
      message->move(message_place::outbox);
      message->row.shard = done.actor.shard;
    }
    message->row.order = inbox_.next_order();
    ++numbers_.counts.messages;
    mailboxes_.arrive(message);
    into.delivered.push_back(std::move(message));
  }
  done.sent.clear();
}

// The handler threw. The next message may be this one, after a pause.
turns::next_step turns::fail(turn_state& done, const std::exception_ptr& why, followed_by then) {
  const record_ref& message = done.handles;
  const bool no_method = message->method == nullptr;
  const handler_failed failure = failure_of(why);
  // Not under the mutex.
  object earlier = before(done);
  guard held(core_);
  if (!core_.is_current(done)) {
    held.unlock();
    return give_up(done, then);
  }
  if (done.actor.gives_up) {
    held.unlock();
    return run_again(done, std::move(earlier), then);
  }
  std::swap(done.actor.it, earlier);
  core_.touch_all(done);
  ++numbers_.counts.failed_turns;
  const bool nested = message->row.from == origin::nested;
  // A post is handled again even if its answer was asked for by its id.
  const bool waits = message->answer != nullptr && message->row.from != origin::post;
  if (!nested && !waits && !no_method && ++message->failures < core_.chosen.failures_max) {
    message->again = true;
    ++numbers_.counts.retries;
    batches_.open().data.failed.push_back({message->row.order, message->failures});
    core_.need_commit();
    done.actor.waits.push_front(message);
    const auto first = std::chrono::ceil<milliseconds>(
        std::min<std::chrono::nanoseconds>(retry_last, core_.chosen.retry_first));
    return choose_after(done.actor, then,
                        std::min(retry_last, first * (1u << std::min(message->failures - 1, 20u))));
  }
  filling& into = batches_.open();
  const bool is_dead = !nested && !waits;
  batches_.leave_inbox(*message, is_dead);
  if (is_dead) core_.make_dead_letter(message, failure);
  // A dead letter may be handled once more: its asks were handled, and their answers stay.
  if (!is_dead) end_asks(done);
  // A handler that failed has no effect, unless its asks had effects on others.
  if ((nested && !message->unheard) ||
      (message->row.named && (is_dead || done.has_asked || message->again)))
    batches_.keep_answer(*message, {}, &failure, core_.clock.now());
  batches_.begin_commit_span(*message);
  std::exception_ptr told = no_method ? why : std::make_exception_ptr(failure);
  into.settlements.push_back({message, {}, std::move(told)});
  core_.need_commit();
  return choose_after(done.actor, then);
}

// The turn began before a batch failed: nothing of it counts.
turns::next_step turns::give_up(turn_state& old, followed_by then) {
  std::unique_ptr<answer_to> answer, on_stored;
  bool may_be_handled = false;
  std::exception_ptr why;
  {
    guard held(core_);
    const record_ref& message = old.handles;
    end_wait(*message);
    known_.remove(message);
    answer = std::move(message->answer);
    on_stored = std::move(message->on_stored);
    may_be_handled = message->stored_with != 0;
    why = health_.last_failure();
  }
  fail_all(answer, may_be_handled ? with_unknown_effect(why) : why);
  fail_all(on_stored, why);
  guard held(core_);
  return choose_after(old.actor, then);
}

void turns::send_from(turn_state& from, request request) {
  record_ref message = core_.make_record(request);
  message->row.id = from.handles->row.id.part(++from.parts);
  message->row.from = origin::post;
  from.sent.push_back(std::move(message));
}

// The changes of the asked actor are stored with the message of the one that asks, or after it. In
// the same database a nested message needs no row for that: the asking message has a row.
void turns::store_asking(turn_state& from, bool asks_elsewhere) {
  const record_ref& message = from.handles;
  message->asked_elsewhere |= asks_elsewhere;
  if (message->stored_with != 0) return;
  if (message->row.from == origin::nested) {
    if (!asks_elsewhere && !message->row.named) return;
    message->row.named = true;  // so that it is found in the inbox
  }
  // Messages arrive in the order of their numbers.
  inbox_.renumber(message->row);
  mailboxes_.arrive(message);
}

void turns::ask_from(turn_state& from, request request) noexcept {
  record_ref message;
  std::unique_ptr<answer_to> answer = std::move(request.answer);
  try {
    message = core_.make_record(request);
    message->row.id = from.handles->row.id.part(++from.parts);
    message->row.from = origin::nested;
    message->row.asker = from.handles->row.id;
    message->again = from.handles->again;
    guard held(core_);
    if (!core_.is_current(from)) std::rethrow_exception(health_.last_failure());
    activation* asked = nullptr;
    if (shards_.is_here(message->row.shard)) {
      asked = &mailboxes_.actor_of(*message->kind, message->row.to.key);
      cycles::check(from.actor, *asked);
    }
    intake_.check_identity(*message);
    from.has_asked = true;
    store_asking(from, asked == nullptr);
    message->answer = std::move(answer);
    if (asked != nullptr) from.actor.waits_for.push_back(asked);
    if (std::unique_ptr<answer_to> none; intake_.joins(*message, none)) {
      const record_ref first = known_.find(message->row.id);
      if (first->asker == nullptr) begin_wait(first, from, asked);  // it was read from the inbox
      return;
    }
    known_.add(message->row.id, message);
    begin_wait(message, from, asked);
    if (asked == nullptr) {
      inbox_.count(*message);
      message->move(message_place::elsewhere);
      core_.touch(from.actor.shard);
      batches_.open().asks_elsewhere.push_back(message);
      core_.need_commit();
    } else if (message->again) {
      message->move(message_place::looked_up);
      intake_.begin_look_up(message);
    } else {
      mailboxes_.take_in(message);
    }
  } catch (...) {
    if (message != nullptr && message->answer != nullptr) answer = std::move(message->answer);
    if (answer != nullptr) answer->fail(std::current_exception());
  }
}

void turns::set_reminder(turn_state& from, std::string_view name, wall_time due, std::string rule,
                         request request) {
  check_reminder_name(name);
  const record_ref message = core_.make_record(request);
  std::erase_if(from.reminders,
                [name](const stored_reminder& reminder) { return reminder.name == name; });
  stored_reminder kept;
  kept.to = {from.actor.kind.name, from.actor.key};
  kept.shard = from.actor.shard;
  kept.name = std::string(name);
  kept.due = std::chrono::ceil<milliseconds>(due);
  kept.rule = std::move(rule);
  kept.method = message->row.method;
  kept.signature = message->row.signature;
  kept.arguments = std::move(message->row.arguments);
  from.reminders.push_back(std::move(kept));
}

void send_from(turn_state& from, request request) {
  from.owner.send_from(from, std::move(request));
}
void ask_from(turn_state& from, request request) noexcept {
  from.owner.ask_from(from, std::move(request));
}

}  // namespace troupe::durable::parts
