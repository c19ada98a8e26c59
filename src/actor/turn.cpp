// An actor's turn: it handles the mail that is there, oldest first, up to its limits.
#include "actor/turn.hpp"

#include <algorithm>

#include "actor/running.hpp"
#include "actor/system.hpp"
#include "base/clock.hpp"
#include "sched/worker.hpp"
#include "troupe/base/invariant.hpp"

namespace troupe::actor {
namespace {

constinit thread_local turn_place place_of_thread;

// The actor ends: what is sent to it from now on is dead letters.
void end_object(cell& actor) noexcept {
  if (actor.alive()) {
    actor.flags |= cell::stopped;
    actor.type->destroy(actor.object());
  }
  actor.flags |= cell::stopped;
}

const char* farewell(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "farewell";
  message_guard<message> guard{mail};
  if (act == message_act::handle) place_of_thread.active->farewell = true;
  return nullptr;
}

bool is_ours(const message& mail) noexcept { return mail.act == &farewell || mail.act == &stop_by_message; }

void stop_after(cell& actor, system& home, message::handler act) noexcept {
  home.report(&actor, act, std::current_exception());
  if ((actor.flags & cell::born) == 0 || (actor.flags & cell::stop_on_error) != 0) end_object(actor);
}

// An actor that is not born yet, or stopped; or a stop that discards.
TROUPE_NOINLINE void handle_unusual(system& home, cell& actor, message& mail) noexcept {
  const message::handler act = mail.act;
  if (is_ours(mail)) {
    act(&mail, nullptr, message_act::handle);
    return;
  }
  // order: relaxed  a stop need not be seen by the very next message
  if ((actor.flags & cell::stopped) != 0 || home.discarding.load(std::memory_order_relaxed)) {
    if ((actor.flags & cell::born) == 0) actor.flags |= cell::stopped;
    home.bury(actor, mail);
    return;
  }
  try {
    act(&mail, actor.object(), message_act::handle);  // the constructor
    actor.flags |= cell::born;
  } catch (...) {
    stop_after(actor, home, act);
  }
}

TROUPE_INLINE void handle(system& home, cell& actor, message& mail, turn_place& place) noexcept {
  const message::handler act = mail.act;
  // order: relaxed  for running_handlers, a snapshot
  place.method.store(act, std::memory_order_relaxed);
  // order: relaxed  a stop need not be seen by the very next message
  if ((actor.flags & (cell::born | cell::stopped)) != cell::born || home.discarding.load(std::memory_order_relaxed)) [[unlikely]] {
    return handle_unusual(home, actor, mail);
  }
  try {
    act(&mail, actor.object(), message_act::handle);
  } catch (...) {
    stop_after(actor, home, act);
  }
}

// Puts the mail from other threads behind what is there.
TROUPE_NOINLINE void collect(activation& active) noexcept {
  mailbox box(active.actor->word);
  message* oldest = nullptr;
  message* newest = nullptr;
  box.collect(active, [&](message& mail) {
    // order: relaxed  within the owner's list
    mail.next.store(reinterpret_cast<std::uintptr_t>(oldest), std::memory_order_relaxed);
    oldest = &mail;
    if (newest == nullptr) newest = &mail;
  });
  if (active.newest == nullptr) {
    active.oldest = oldest;
  } else {
    // order: relaxed  within the owner's list
    active.newest->next.store(reinterpret_cast<std::uintptr_t>(oldest), std::memory_order_relaxed);
  }
  active.newest = newest;
}

// When a turn is over. What was there at its start is handled up to the limits; of what comes meanwhile
// only the first few, for the next turn has the rest: an actor that feeds another one by messages to itself
// would else run ahead until what it made no longer fits the cache, and one message a turn is slow.
// The clock is looked at after 2, 8, 32 … messages: a turn of one or two never pays for it.
class turn_clock {
 public:
  static constexpr unsigned arrivals_max = 16;  // messages of a turn when some came after its start

  turn_clock(limits bounds, const message* last_present) noexcept
      : limit_(bounds.messages), ns_(bounds.ns), last_present_(last_present) {
    if (limit_ < look_at_) look_at_ = limit_;
  }

  TROUPE_INLINE bool over() noexcept { return handled_ == look_at_ && look(); }

  TROUPE_INLINE void count(const message& next) noexcept {
    ++handled_;
    if (&next == last_present_) {
      limit_ = std::min(limit_, std::max(handled_, arrivals_max));
      look_at_ = std::min(look_at_, limit_);
    }
  }

 private:
  TROUPE_NOINLINE bool look() noexcept {
    if (handled_ >= limit_) return true;
    look_at_ = std::min(4 * handled_, limit_);
    const std::int64_t now = base::now_ns();
    if (began_ == 0) began_ = now;
    return now - began_ > ns_;
  }

  unsigned limit_;
  unsigned handled_ = 0;
  unsigned look_at_ = 2;
  const std::int64_t ns_;
  const message* const last_present_;  // stale once handled: compared only until then
  std::int64_t began_ = 0;
};

TROUPE_INLINE limits limits_of(system& home, cell& actor) noexcept {
  if ((actor.flags & cell::limited) == 0 && !home.choose_messages) [[likely]] return home.turn;
  limits bounds = (actor.flags & cell::limited) != 0 ? reinterpret_cast<cell_limits*>(&actor + 1)->turn : home.turn;
  if (home.choose_messages) bounds.messages = home.choose_messages(bounds.messages);
  return bounds;
}

// order: relaxed  for running_handlers, a snapshot
TROUPE_INLINE turn_place& enter_turn(activation& active, const system& home) noexcept {
  turn_place& place = place_of_thread;
  if (place.home.load(std::memory_order_relaxed) != &home) [[unlikely]] {
    if (!place.listed) list_running(place);
    place.home.store(&home, std::memory_order_relaxed);
  }
  place.active = &active;
  place.actor.store(active.actor, std::memory_order_relaxed);
  return place;
}

sched::after_turn run(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  cell& actor = *active.actor;
  system& home = system::of(actor);
  turn_place& place = enter_turn(active, home);
  turn_clock clock(limits_of(home, actor), active.newest);
  sched::after_turn after = sched::after_turn::quiet;
  for (;;) {
    message* mail = active.take();
    if (mail == nullptr) {
      // In this order: what a former holder sent before it dropped its ref is seen by the look behind it.
      if (active.farewell && actor.refs.revive()) active.farewell = false;
      if (!mailbox(actor.word).has_mail(active)) {
        if (active.farewell) {
          end_object(actor);
          after = sched::after_turn::gone;
        }
        break;
      }
      collect(active);
      mail = active.take();
    }
    if (clock.over()) [[unlikely]] {
      active.put_back(*mail);
      after = sched::after_turn::again;
      break;
    }
    clock.count(*mail);
    handle(home, actor, *mail, place);
  }
  // order: relaxed  for running_handlers, a snapshot
  place.actor.store(nullptr, std::memory_order_relaxed);
  return after;
}

bool settle(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  if (!mailbox(active.actor->word).rest(active)) return false;
  free_activation(active);
  return true;
}

bool pending(const sched::runnable& item) {
  auto& active = const_cast<activation&>(static_cast<const activation&>(item));
  return mailbox(active.actor->word).has_mail(active);
}

void free_slot(cell& actor) noexcept {
  system& home = system::of(actor);
  home.slots.free(&actor, own_magazines(home));
}

void dispose(sched::runnable& item) noexcept {
  auto& active = static_cast<activation&>(item);
  cell& actor = *active.actor;
  free_activation(active);
  free_slot(actor);
}

void discard(sched::runnable& item) noexcept {
  auto& active = static_cast<activation&>(item);
  cell& actor = *active.actor;
  system& home = system::of(actor);
  do {
    if (mailbox(actor.word).has_mail(active)) collect(active);
    while (message* mail = active.take()) {
      if (is_ours(*mail)) {
        mail->act(mail, nullptr, message_act::discard);
      } else {
        home.bury(actor, *mail);
      }
    }
  } while (!mailbox(actor.word).rest(active));
  free_activation(active);
}

}  // namespace

TROUPE_NOINLINE turn_place& current_turn() noexcept { return place_of_thread; }

const sched::runnable_type turn_type{&run, &settle, &pending, &dispose, &discard};

const char* stop_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "stop";
  message_guard<message> guard{mail};
  if (act == message_act::handle) end_object(*place_of_thread.active->actor);
  return nullptr;
}

void say_farewell(cell& to) noexcept {
  system& home = system::of(to);
  // order: relaxed  set before the last threads ended
  if (home.closing.load(std::memory_order_relaxed)) return;
  deliver(to, *make_message<message>(&farewell));
}

}  // namespace troupe::actor
