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

void handle(system& home, cell& actor, message& mail) noexcept {
  const message::handler act = mail.act;
  if (is_ours(mail)) {
    act(&mail, nullptr, message_act::handle);
    return;
  }
  // order: relaxed  a stop need not be seen by the very next message
  if (!((actor.flags & cell::stopped) == 0) || home.discarding.load(std::memory_order_relaxed)) [[unlikely]] {
    if ((actor.flags & cell::born) == 0) actor.flags |= cell::stopped;
    home.bury(actor, mail);
    return;
  }
  // order: relaxed  for running_handlers, a snapshot
  place_of_thread.method.store(act, std::memory_order_relaxed);
  try {
    act(&mail, actor.object(), message_act::handle);
    if ((actor.flags & cell::born) == 0) [[unlikely]] actor.flags |= cell::born;  // it was the constructor
  } catch (...) {
    home.report(&actor, act, std::current_exception());
    if ((actor.flags & cell::born) == 0 || (actor.flags & cell::stop_on_error) != 0) end_object(actor);
  }
}

bool collect(activation& active) noexcept {
  mailbox box(active.actor->word);
  if (!box.has_mail(active)) return false;
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
  return true;
}

// When a turn is over. What was there at its start is handled up to the limits; of what comes meanwhile
// only the first few, for the next turn has the rest: an actor that feeds another one by messages to itself
// would else run ahead until what it made no longer fits the cache, and one message a turn is slow.
// The clock is looked at after 2, 8, 32 … messages: a turn of one or two never pays for it.
class turn_clock {
 public:
  static constexpr unsigned arrivals_max = 16;  // messages of a turn when some came after its start

  turn_clock(const limits& bounds, const message* last_present) noexcept : bounds_(bounds), last_present_(last_present) {}

  bool over() noexcept {
    if (handled_ >= (present_ ? bounds_.messages : std::min(bounds_.messages, arrivals_max))) return true;
    if (handled_ != next_look_) return false;
    next_look_ *= 4;
    const std::int64_t now = base::now_ns();
    if (began_ == 0) began_ = now;
    return now - began_ > bounds_.ns;
  }

  void count(const message& next) noexcept {
    ++handled_;
    if (&next == last_present_) present_ = false;
  }

 private:
  const limits bounds_;
  const message* const last_present_;  // stale once handled: compared only until then
  bool present_ = true;
  unsigned handled_ = 0;
  unsigned next_look_ = 2;
  std::int64_t began_ = 0;
};

limits limits_of(system& home, cell& actor) noexcept {
  limits bounds = (actor.flags & cell::limited) != 0 ? reinterpret_cast<cell_limits*>(&actor + 1)->turn : home.turn;
  if (home.choose_messages) [[unlikely]] bounds.messages = home.choose_messages(bounds.messages);
  return bounds;
}

// order: relaxed  for running_handlers, a snapshot
void enter_turn(activation& active, const system& home) noexcept {
  if (!place_of_thread.listed) [[unlikely]] list_running(place_of_thread);
  place_of_thread.active = &active;
  if (place_of_thread.home.load(std::memory_order_relaxed) != &home) [[unlikely]] {
    place_of_thread.home.store(&home, std::memory_order_relaxed);
  }
  place_of_thread.actor.store(active.actor, std::memory_order_relaxed);
}

sched::after_turn run(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  cell& actor = *active.actor;
  system& home = system::of(actor);
  enter_turn(active, home);
  turn_clock clock(limits_of(home, actor), active.newest);
  sched::after_turn after = sched::after_turn::quiet;
  for (;;) {
    message* mail = active.take();
    if (mail == nullptr) {
      // In this order: what a former holder sent before it dropped its ref is seen by the look behind it.
      if (active.farewell && actor.refs.revive()) active.farewell = false;
      if (!collect(active)) {
        if (active.farewell) {
          end_object(actor);
          after = sched::after_turn::gone;
        }
        break;
      }
      mail = active.take();
    }
    if (clock.over()) [[unlikely]] {
      active.put_back(*mail);
      after = sched::after_turn::again;
      break;
    }
    clock.count(*mail);
    handle(home, actor, *mail);
  }
  // order: relaxed  for running_handlers, a snapshot
  place_of_thread.actor.store(nullptr, std::memory_order_relaxed);
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
    while (message* mail = active.take()) {
      if (is_ours(*mail)) {
        mail->act(mail, nullptr, message_act::discard);
      } else {
        home.bury(actor, *mail);
      }
    }
  } while (collect(active) || !mailbox(actor.word).rest(active));
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
