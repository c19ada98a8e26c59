// An actor's turn: it handles the mail that is there, oldest first, up to its limits.
#include "actor/turn.hpp"

#include <algorithm>

#include "actor/out_of_mail.hpp"
#include "actor/running.hpp"
#include "actor/system.hpp"
#include "base/clock.hpp"
#include "sched/worker.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {
namespace {

constinit thread_local turn_place place_of_thread [[gnu::tls_model("initial-exec")]];

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

// Whether this actor's mail needs a second look: it is not born yet, or stopped; or a stop discards all.
bool unusual(const system& home, const cell& actor) noexcept {
  // order: relaxed  a stop need not be seen by the very next turn
  return (actor.flags & (cell::born | cell::stopped)) != cell::born || home.discarding.load(std::memory_order_relaxed);
}

TROUPE_NOINLINE void fail(turn_place& place, system& home, cell& actor, message::handler act) noexcept {
  home.report(&actor, act, std::current_exception());
  if ((actor.flags & cell::born) == 0 || (actor.flags & cell::stop_on_error) != 0) end_object(actor);
  // order: relaxed  a stop may be seen a turn late
  place.unusual.store(unusual(home, actor), std::memory_order_relaxed);
}

TROUPE_NOINLINE void handle_unusual(turn_place& place, system& home, cell& actor, message& mail) noexcept {
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
    act(&mail, actor.object(), message_act::handle);
    actor.flags |= cell::born;  // that was the constructor, or it was born before
    // order: relaxed  as above
    place.unusual.store(unusual(home, actor), std::memory_order_relaxed);
  } catch (...) {
    fail(place, home, actor, act);
  }
}

TROUPE_INLINE void handle(turn_place& place, system& home, cell& actor, message& mail) noexcept {
  // order: relaxed  as above
  if (place.unusual.load(std::memory_order_relaxed)) [[unlikely]] return handle_unusual(place, home, actor, mail);
  const message::handler act = mail.act;
  // order: relaxed  for running_handlers, a snapshot
  place.method.store(act, std::memory_order_relaxed);
  try {
    act(&mail, actor.object(), message_act::handle);
  } catch (...) {
    fail(place, home, actor, act);
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
  active.append_list(*oldest, *newest);
}

// When a turn is over. What was there at its start is handled up to the limits; of what comes meanwhile
// only the first few, for the next turn has the rest: an actor that feeds another one by messages to itself
// would else run ahead until what it made no longer fits the cache, and one message a turn is slow.
constexpr unsigned arrivals_max = 16;  // messages of a turn when some came after its start

// The clock is looked at after 9, 36, 144 … messages while the actor's handlers are quick, more often towards the end
// of the turn's time; after the first message until there was a look, and after each one while they are slow.
constexpr std::int64_t slow_ns = 5'000;  // a handler that takes longer is slow

// Messages of an actor's turn before the first look.
TROUPE_INLINE unsigned first_look(const cell& actor) noexcept {
  static_assert(cell::quick == 8);
  return (actor.flags & cell::quick) | 1u;
}

limits limits_of(const system& home, const cell& actor) noexcept {
  return (actor.flags & cell::limited) != 0 ? reinterpret_cast<const cell_limits*>(&actor + 1)->turn : home.turn;
}

// How many messages this turn may handle.
TROUPE_INLINE unsigned message_limit(const system& home, const cell& actor) noexcept {
  if ((actor.flags & cell::limited) == 0 && !home.choose_messages) [[likely]] return home.turn.messages;
  const unsigned most = limits_of(home, actor).messages;
  return home.choose_messages ? home.choose_messages(most) : most;
}

// Looks at the clock. After how many messages of the turn to look again; 0 when its time is over.
TROUPE_NOINLINE unsigned look_at_clock(turn_place& place, cell& actor, unsigned handled) noexcept {
  const std::int64_t now = base::now_ns();
  const std::int64_t mean_ns = (now - place.looked_at_ns) / (handled - place.looked_after) + 1;
  const bool slow = mean_ns > slow_ns;
  const bool first = place.turn_looks++ == 0;
  // The look before the first one lies in an earlier turn, maybe long ago: what seems slow by it is seen by the next
  // message, and what seems quick is.
  if (first) place.turn_began_ns = slow ? now : place.looked_at_ns;
  if (!first || !slow) {
    constexpr unsigned pace = cell::quick | cell::slow;
    actor.flags = static_cast<std::uint8_t>((actor.flags & ~pace) | (slow ? cell::slow : cell::quick));
  }
  place.looked_at_ns = now;
  place.looked_after = handled;
  // order: relaxed  a stop may be seen a turn late
  place.unusual.store(unusual(system::of(actor), actor), std::memory_order_relaxed);
  const std::int64_t left = limits_of(system::of(actor), actor).ns - (now - place.turn_began_ns);
  if (left < 0) return 0;
  if (slow) return handled + 1;
  // As many as should fit into half of what is left, and not too many at a time: the next handlers may be slower.
  const auto fit = static_cast<unsigned>(std::min<std::int64_t>(left / (2 * mean_ns), 3 * handled));
  return handled + std::max(fit, 1u);
}

struct turn_limit {
  turn_limit(unsigned most, unsigned first_look) noexcept : messages(most), look_after(std::min(most, first_look)) {}

  TROUPE_NOINLINE bool over(turn_place& place, cell& actor) noexcept {
    if (handled >= messages) return true;
    if (system::of(actor).choose_messages) {  // simulated: the seed alone ends turns
      look_after = messages;
      return false;
    }
    look_after = look_at_clock(place, actor, handled);
    if (look_after == 0) return true;
    look_after = std::min(look_after, messages);
    return false;
  }

  // The next batch came after the turn's start.
  bool arrivals_over() noexcept {
    messages = std::min(messages, std::max(handled, arrivals_max));
    look_after = std::min(look_after, messages);
    return handled >= messages;
  }

  unsigned messages;
  unsigned look_after;
  unsigned handled = 0;
};

TROUPE_NOINLINE void enter_unlike_most(turn_place& place, const system& home, const cell& actor) noexcept {
  // order: relaxed  a stop may be seen a turn late
  place.unusual.store(unusual(home, actor), std::memory_order_relaxed);
  if ((actor.flags & cell::slow) == 0) return;
  // The turn of a slow one begins by a look, so that it ends with the message that exceeds its time.
  place.turn_began_ns = place.looked_at_ns = base::now_ns();
  place.turn_looks = 1;
}

TROUPE_INLINE turn_place& enter_turn(activation& active, const system& home) noexcept {
  turn_place& place = place_of_thread;
  // order: relaxed (both)  for running_handlers, a snapshot
  if (place.home.load(std::memory_order_relaxed) != &home) [[unlikely]] {
    if (!place.listed) list_running(place);
    place.home.store(&home, std::memory_order_relaxed);
  }
  place.active = &active;
  place.turn_looks = place.looked_after = 0;
  const cell& actor = *active.actor;
  // order: relaxed  as unusual
  if ((actor.flags & (cell::born | cell::stopped | cell::slow)) == cell::born &&
      !home.discarding.load(std::memory_order_relaxed)) [[likely]] {
    place.unusual.store(false, std::memory_order_relaxed);
  } else {
    enter_unlike_most(place, home, actor);
  }
  // order: relaxed  for running_handlers, a snapshot
  place.actor.store(active.actor, std::memory_order_relaxed);
  return place;
}

// Handles a batch of mail, oldest first. What is left of it when the turn's limits end it; else null.
TROUPE_INLINE message* handle_batch(turn_place& place, system& home, cell& actor, message* mail, turn_limit& limit) noexcept {
  while (mail != nullptr) {
    if (limit.handled == limit.look_after && limit.over(place, actor)) [[unlikely]] return mail;
    ++limit.handled;
    message* next = activation::after(*mail);
    handle(place, home, actor, *mail);
    mail = next;
  }
  return nullptr;
}

sched::after_turn run(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  cell& actor = *active.actor;
  system& home = system::of(actor);
  turn_place& place = enter_turn(active, home);
  turn_limit limit(message_limit(home, actor), first_look(actor));
  sched::after_turn after = sched::after_turn::again;
  for (;;) {
    const mail_list batch = active.take_all();
    if (message* left = handle_batch(place, home, actor, batch.oldest, limit)) [[unlikely]] {
      active.put_back(*left, batch);
      break;
    }
    if (!active.empty()) {
      if (limit.arrivals_over()) break;
      continue;
    }
    const out_of_mail next = ask_out_of_mail(actor.refs, mailbox(actor.word), active, (actor.flags & cell::stopped) != 0);
    if (next == out_of_mail::collects) {
      collect(active);
      if (limit.handled != 0 && limit.arrivals_over()) break;
      continue;
    }
    if (next == out_of_mail::ends) {
      end_object(actor);
      place.unusual.store(true, std::memory_order_relaxed);  // order: relaxed  the thread's own
      continue;
    }
    after = next == out_of_mail::goes ? sched::after_turn::gone : sched::after_turn::quiet;
    break;
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
    for (message *mail = active.take_all().oldest, *next = nullptr; mail != nullptr; mail = next) {
      next = activation::after(*mail);
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

bool is_ours(const message& mail) noexcept { return mail.act == &farewell || mail.act == &stop_by_message; }

TROUPE_NOINLINE turn_place& current_turn() noexcept { return place_of_thread; }

const sched::runnable_type turn_type{&run, &settle, &pending, &dispose, &discard};

const char* stop_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "stop";
  message_guard<message> guard{mail};
  if (act == message_act::handle) {
    end_object(*place_of_thread.active->actor);
    // order: relaxed  the thread's own
    place_of_thread.unusual.store(true, std::memory_order_relaxed);
  }
  return nullptr;
}

void say_farewell(cell& to) noexcept try {
  system& home = system::of(to);
  // order: relaxed  set before the last threads ended
  if (home.closing.load(std::memory_order_relaxed)) return;
  deliver(to, *make_message<message>(&farewell));
} catch (const std::bad_alloc&) {
  // Nobody can tell it, and nobody refers to it: it ends with its runtime.
}

}  // namespace troupe::actor
