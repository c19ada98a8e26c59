// An actor's turn: handles the mail that waits, oldest first, up to the turn's limits.
//
// Read from `run` (the scheduler's entry, the fast path) to `run_on` (every other turn, and the
// rest of a turn that left the fast path). `turn_type` and `counted_turn_type`, at the end, are
// the scheduler's view of an actor; the second one counts messages on its fast path.
#include "actor/turn/turn.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>

#include "actor/counting/last_handler.hpp"
#include "actor/mailbox/bounded_mail.hpp"
#include "actor/mailbox/dead_letters.hpp"
#include "actor/mailbox/empty_mailbox.hpp"
#include "actor/mailbox/own_mail.hpp"
#include "actor/mailbox/watched_message.hpp"
#include "actor/state/awaited.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/traced.hpp"
#include "actor/turn/turn_limit.hpp"
#include "actor/turn/turn_records.hpp"
#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "observe/ticks.hpp"
#include "sched/stealing/worker.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

namespace {

TROUPE_NOINLINE void fail(cell& actor, message::handler act, std::exception_ptr failure) noexcept {
  tasks::running_state& state = tasks::running_here();
  actor_system& system = actor_system::of(actor);
  if (thread_counts* const counts = system.counts_here()) [[unlikely]]
    counts->of(*actor.type, act).failures.add(1);
  kept_failure failed = report_own(actor, act, std::move(failure));
  if ((actor.flags & cell::constructed) == 0) {
    end_object(actor,
               ended(ended::why::failed, std::move(failed.exception), std::move(failed.memory)));
  } else if (supervision_of(actor) != nullptr) {
    apply_error_policy(actor, std::move(failed));
  }
  // At the runtime's end destructors run outside of the actor's own turn: then `active` is null, or
  // is another actor's.
  const auto* const active = static_cast<activation*>(state.active);
  if (active != nullptr && active->actor == &actor) update_slow_path(state, system);
}

// The exception thrown by a handler, between its catch block and fail_thrown(). fail() must not run
// inside the catch block: there the C++ runtime holds the exception too, and that holder would
// outlive the memory that fail() lets go of.
alignas(std::exception_ptr) constinit thread_local std::byte
    thrown_here[sizeof(std::exception_ptr)]{};
TROUPE_NOINLINE void keep_thrown() noexcept {
  ::new (static_cast<void*>(thrown_here)) std::exception_ptr(std::current_exception());
}
TROUPE_NOINLINE void fail_thrown(cell& actor, message::handler act) noexcept {
  auto& thrown = *std::launder(reinterpret_cast<std::exception_ptr*>(thrown_here));
  std::exception_ptr failure = std::move(thrown);
  std::destroy_at(&thrown);
  fail(actor, act, std::move(failure));
}

// Counts a part of an actor's work off the fast path, a message or a resumption.
class counted_part {
 public:
  counted_part(handler_count& handler, observe::tally& which) noexcept {
    if (which.count()) [[unlikely]]
      sample_.emplace(handler, which);
    tasks::running_here().begin_part();
  }

 private:
  std::optional<sampled_part> sample_;
};

TROUPE_INLINE void handle(tasks::running_state& state, void* object, message& mail) noexcept {
  // order: relaxed  for running_handlers, a snapshot
  state.method.store(mail.act, std::memory_order_relaxed);
  try {
    mail.act(&mail, object, message_act::handle);
    return;
  } catch (...) {
    keep_thrown();
  }
  // order: relaxed  the thread's own
  fail_thrown(*active_here().actor, tasks::running_here().method.load(std::memory_order_relaxed));
}

TROUPE_NOINLINE thread_counts* find_counts(tasks::running_state& state,
                                           const actor_system& system) noexcept {
  thread_counts* const found = system.counts_here();
  state.counted = found;
  return found;
}
// The counts of the calling thread, which is in a turn of this runtime; null when that is not
// observed, or when memory has run out.
TROUPE_INLINE thread_counts* counts_in_turn(tasks::running_state& state,
                                            const actor_system& system) noexcept {
  if (state.counted != nullptr) return static_cast<thread_counts*>(state.counted);
  return system.counts == nullptr ? nullptr : find_counts(state, system);
}

TROUPE_NOINLINE void handle_sample(tasks::running_state& state, handler_count& handler,
                                   void* object, message& mail) noexcept {
  const sampled_part part(handler, handler.messages);
  handle(state, object, mail);
}

// Handles a message of a runtime that is observed. `object` is the actor's, which need not lie
// behind the cell (object_of).
TROUPE_INLINE void handle_counted(tasks::running_state& state, thread_counts& counts, cell& actor,
                                  void* object, message& mail) noexcept {
  handler_count& handler = count_of(counts, *actor.type, mail);
  if (handler.messages.count()) [[unlikely]]
    return handle_sample(state, handler, object, mail);
  handle(state, object, mail);
}

// At the end of a turn of a runtime that is observed. running_state names the handler that runs.
TROUPE_INLINE void keep_last(const tasks::running_state& state, cell& actor) noexcept {
  // order: relaxed  the thread's own
  set_last(actor, state.method.load(std::memory_order_relaxed));
}

TROUPE_NOINLINE void resume_sample(handler_count& handler, message& mail) noexcept {
  const sampled_part part(handler, handler.resumed);
  mail.act(&mail, nullptr, message_act::handle);
}

// An urgent message, which resumes a call or is the runtime's own, and never throws. `counts` are
// null, unless the runtime is observed.
TROUPE_INLINE void handle_urgent(tasks::running_state& state, thread_counts* counts,
                                 activation& active, message& mail) noexcept {
  if (counts != nullptr) [[unlikely]] {
    const message& counted = active.suspended == nullptr ? mail : active.suspended->call;
    handler_count& handler = count_of(*counts, *active.actor->type, counted);
    state.begin_part();
    if (handler.resumed.count()) [[unlikely]]
      return resume_sample(handler, mail);
  }
  mail.act(&mail, nullptr, message_act::handle);
}

}  // namespace

void handle_unusual(tasks::running_state& state, actor_system& system, cell& actor,
                    message& mail) noexcept {
  if (is_ours(mail)) {
    if (thread_counts* const counts = system.counts_here()) [[unlikely]] {
      handler_count& handler = counts->of(*actor.type, mail.act);
      static_cast<void>(counted_part(handler, handler.messages));
    }
    mail.act(&mail, nullptr, message_act::handle);
    return;
  }
  if ((actor.flags & (cell::stopped | cell::ends_soon)) != 0 || system.discarding()) {
    if ((actor.flags & cell::constructed) == 0) end_object(actor);
    make_uncounted_dead_letter(system, actor, mail);  // the message has already left its mailbox
    ++turn_here().uncounted;
    return;
  }
  const message& sent = as_sent(mail);
  const message::handler act = sent.act;
  const traced handling(sent, act, actor);
  std::optional<counted_part> part;
  if (thread_counts* const counts = system.counts_here()) [[unlikely]] {
    handler_count& handler = counts->of(*actor.type, act);
    part.emplace(handler, handler.messages);
    set_last(actor, act);
  }
  const bool constructs = (actor.flags & cell::constructed) == 0;
  // order: relaxed  for running_handlers, a snapshot
  state.method.store(act, std::memory_order_relaxed);
  try {
    mail.act(&mail, object_of(actor), message_act::handle);
    if (constructs) {  // that was the constructor
      actor.flags |= cell::constructed;
      if (actor_heap* heap = heap_of(actor)) heap->begin();
    }
    update_slow_path(state, system);
    return;
  } catch (...) {
    keep_thrown();
  }
  fail_thrown(actor, act);
}

namespace {

// Moves the mail that other threads sent into the activation's list: ordinary mail to the end,
// urgent mail to the front.
TROUPE_NOINLINE void collect(activation& active) noexcept {
  mailbox box(active.actor->word);
  message* oldest = nullptr;
  message* newest = nullptr;
  message* urgent = nullptr;
  std::uint32_t count = 0;
  box.collect(active, [&](message& mail, bool is_urgent) {
    count += is_urgent ? 0 : 1;
    message*& behind = is_urgent ? urgent : oldest;
    // order: relaxed  within the owner's list
    mail.next.store(reinterpret_cast<std::uintptr_t>(behind), std::memory_order_relaxed);
    behind = &mail;
    if (!is_urgent && newest == nullptr) newest = &mail;
  });
  if (oldest != nullptr) active.append_list(*oldest, *newest);
  if (actor_system::of(*active.actor).counts != nullptr) [[unlikely]]
    active.length.add(count);
  // Linear, even for a million of them: a parent may get that many from its children at once.
  mail_link* behind = nullptr;
  while (urgent != nullptr) {
    message& mail = *urgent;
    urgent = activation::as_message(activation::after(mail));
    if (behind == nullptr) {
      active.append_urgent(mail);
    } else {
      active.insert_urgent(*behind, mail);
    }
    behind = &mail.next;
  }
}

// After each handler of an actor that has a context of its own.
TROUPE_NOINLINE void end_handler(activation& active) noexcept {
  actor_heap* const heap = heap_of(*active.actor);
  if (heap != nullptr && active.actor->alive() && !suspends(active)) heap->end_handler();
}

// As handle_batch. `counts` are null, unless the runtime is observed; then `unusual` is how many
// messages were handled off the fast path.
template <bool Counted>
TROUPE_INLINE std::uintptr_t handle_each(tasks::running_state& state, actor_system& system,
                                         activation& active, std::uintptr_t link, turn_limit& limit,
                                         thread_counts* counts, unsigned& unusual) noexcept {
  cell& actor = *active.actor;
  while (link != 0) {
    if (limit.handled == limit.look_after && limit.over(state, actor)) [[unlikely]]
      return link;
    message& mail = *activation::as_message(link);
    // order: relaxed  a stop need not be seen by the very next message
    if (!state.unusual.load(std::memory_order_relaxed)) [[likely]] {
      ++limit.handled;
      link = activation::after(mail);
      if constexpr (Counted) {
        handle_counted(state, *counts, actor, object_of(actor), mail);
      } else {
        handle(state, object_of(actor), mail);
      }
      continue;
    }
    const bool urgent = activation::is_urgent(link);
    if (active.suspended != nullptr && !urgent) return link;
    ++limit.handled;
    link = activation::after(mail);
    if constexpr (Counted) {
      if (!urgent) active.length.subtract(1);
      ++unusual;
    }
    if (!urgent && actor.is_bounded() && is_counted(mail)) [[unlikely]] {
      if (bound_of(actor)->too_many()) {
        make_dead_letter(system, actor, mail);
        ++turn_here().uncounted;
        continue;
      }
      leave_mailbox(actor);
    }
    turn_here().set_aside = false;
    if (urgent) {
      state.running_call = active.suspended;  // a branch of this call may resume
      handle_urgent(state, system.counts_here(), active, mail);
      state.running_call = nullptr;  // a resumed branch does not reset this itself
    } else {
      handle_unusual(state, system, actor, mail);
    }
    if ((actor.flags & cell::guards) != 0) [[unlikely]]
      look_at_guards(state, system, active, limit);
    if (contexts::current != nullptr) [[unlikely]]
      end_handler(active);
  }
  return 0;
}

TROUPE_INLINE std::uintptr_t handle_counted_batch(tasks::running_state& state, actor_system& system,
                                                  activation& active, std::uintptr_t link,
                                                  turn_limit& limit,
                                                  thread_counts& counts) noexcept {
  const unsigned before = limit.handled;
  unsigned unusual = 0;
  link = handle_each<true>(state, system, active, link, limit, &counts, unusual);
  const unsigned usual = limit.handled - before - unusual;
  active.length.subtract(usual);
  if (usual != 0 || (before != 0 && unusual == 0)) keep_last(state, *active.actor);
  return link;
}

// Handles a batch of mail, oldest first. Returns the link of the first message that it did not
// handle, when the turn's limits end the batch or a handler has suspended the turn; else 0.
TROUPE_INLINE std::uintptr_t handle_batch(tasks::running_state& state, actor_system& system,
                                          activation& active, std::uintptr_t link,
                                          turn_limit& limit) noexcept {
  if (thread_counts* const counts = counts_in_turn(state, system)) [[unlikely]]
    return handle_counted_batch(state, system, active, link, limit, *counts);
  unsigned unusual = 0;
  return handle_each<false>(state, system, active, link, limit, nullptr, unusual);
}

}  // namespace

namespace {

// Each turn off the fast path begins here.
TROUPE_INLINE void begin_turn(tasks::running_state& state, actor_system& system, activation& active,
                              unsigned handled) noexcept {
  cell& actor = *active.actor;
  // order: relaxed (both)  for running_handlers, a snapshot
  if (state.runtime.load(std::memory_order_relaxed) != &system) tasks::enter_runtime(state, system);
  state.active = &active;
  state.actor.store(&actor, std::memory_order_relaxed);
  turn_state& turn = turn_here();
  turn.looks = turn.looked_after = turn.uncounted = 0;
  turn.set_aside = turn.guard_ready = false;
  update_slow_path(state, system);
  // The turn of a slow actor reads the clock at its start, so that the turn ends with the message
  // that exceeds its time.
  if ((actor.flags & cell::slow) == 0 || handled != 0) return;
  turn.began_ns = turn.looked_at_ns = base::now_ns();
  turn.looks = 1;
  if (sched::worker* self = sched::worker::current()) self->expect_long_turns();
}

enum class next_step : std::uint8_t { batch, stop };

// The actor's list is empty: decides by its mailbox and its refs whether the turn continues.
// `after` is the result of the turn, if it ends.
TROUPE_INLINE next_step out_of_batch(activation& active, turn_limit& limit,
                                     sched::after_turn& after) noexcept {
  cell& actor = *active.actor;
  switch (next_step_without_mail(actor.refs, mailbox(actor.word), active,
                                 (actor.flags & cell::stopped) != 0)) {
    case step_without_mail::collects:
      collect(active);
      return limit.handled != 0 && limit.arrivals_over() ? next_step::stop : next_step::batch;
    case step_without_mail::ends:
      end_object(actor, ended(ended::why::unreferenced));
      return next_step::batch;
    case step_without_mail::goes:
      after = sched::after_turn::gone;
      return next_step::stop;
    default:
      after = sched::after_turn::quiet;
      return next_step::stop;
  }
}

// The turn is suspended, and its list has no urgent mail. False when urgent mail has arrived.
TROUPE_INLINE bool stays_suspended(actor_system& system, activation& active) noexcept {
  cell& actor = *active.actor;
  if (mailbox(actor.word).has_mail(active)) collect(active);
  if (!active.urgent_first() && actor.is_bounded()) drop_old(system, active);
  return !active.urgent_first();
}

// Queues the suspensions that yielded: their calls resume in the actor's next turn.
TROUPE_NOINLINE void queue_yielded(tasks::running_state& state, activation& active) noexcept {
  do {
    message& over = *state.yielded;
    state.yielded = activation::as_message(activation::after(over));
    active.append_urgent(over);
  } while (state.yielded != nullptr);
}

}  // namespace

TROUPE_NOINLINE sched::after_turn run_on(tasks::running_state& state, activation& active,
                                         unsigned handled, bool batch_done) noexcept {
  cell& actor = *active.actor;
  actor_system& system = actor_system::of(actor);
  begin_turn(state, system, active, handled);
  const traced turn(observe::event::turn_begin, actor.type->name, actor);
  turn_limit limit(message_limit(system, actor), first_look(actor.flags));
  limit.handled = handled;
  // Urgent mail must overtake the list however long that is: hence collect before the first batch.
  // But it does not overtake urgent mail of the list: then collect later, and do not walk along
  // that in each turn.
  if (!active.urgent_first() && mailbox(actor.word).has_mail(active)) collect(active);
  context* const context_before = enter_heap(heap_of(actor));
  if ((actor.flags & cell::guards) != 0) [[unlikely]] {
    look_at_guards(state, system, active, limit);
  }
  sched::after_turn after = sched::after_turn::again;
  for (;; batch_done = false) {
    // A suspended turn handles urgent mail only: each message in the list must be looked at.
    if ((active.marks & ~activation::told_unreferenced) != 0) [[unlikely]] {
      state.unusual.store(true, std::memory_order_relaxed);  // order: relaxed  the thread's own
      batch_done = false;
    }
    if (!batch_done) {
      const mail_list batch = active.take_all();
      const std::uintptr_t left = handle_batch(state, system, active, batch.oldest, limit);
      if (left != 0) active.put_back(left, batch);
      active.look_for_urgent();
      if (active.suspended != nullptr && !active.urgent_first()) {
        if (!stays_suspended(system, active)) continue;
        after = sched::after_turn::waits;
        break;
      }
      if (left != 0) break;
    }
    if (!active.empty()) {
      if (limit.arrivals_over()) break;
      continue;
    }
    if (out_of_batch(active, limit, after) == next_step::stop) break;
  }
  contexts::leave(context_before);
  state.own.add(tasks::counted::messages, std::int64_t{limit.handled} - turn_here().uncounted);
  // The actor has more to do, though its mailbox is empty.
  if (turn_here().guard_ready && after == sched::after_turn::quiet) [[unlikely]] {
    after = sched::after_turn::again;
  }
  if (state.yielded != nullptr) [[unlikely]] {
    queue_yielded(state, active);
    after = sched::after_turn::again;
  }
  // order: relaxed  the next turn looks by itself
  state.unusual.store(false, std::memory_order_relaxed);
  return leave_turn(state, after);
}

namespace {

// Whether the turn may take the fast path: the actor is alive, not known to be slow, without
// optional state (so with the runtime's own limits) and without guarded messages; the runtime has
// no slow_path_flags but the flags in `turns`; and this thread's last turn was this runtime's.
TROUPE_INLINE bool takes_fast_path(const tasks::running_state& state, unsigned flags,
                                   const actor_system& system) noexcept {
  constexpr unsigned looked_at =
      cell::constructed | cell::stopped | cell::slow | cell::has_optional_state | cell::guards;
  // order: relaxed  as in discarding()
  const unsigned slow = system.slow_path_flags.load(std::memory_order_relaxed);
  // order: relaxed  the thread's own
  constexpr unsigned of_types =
      tasks::runtime_state::counts_messages | tasks::runtime_state::records_turns;
  return (flags & looked_at) == cell::constructed && (slow & ~of_types) == 0 &&
         state.runtime.load(std::memory_order_relaxed) == &system;
}

// As end_object, for an actor whose turn began on the fast path.
TROUPE_INLINE void end_on_fast_path(tasks::running_state& state, actor_system& system,
                                    cell& actor) noexcept {
  if (system.supervised.in_use() || (actor.flags & cell::guards) != 0) [[unlikely]]
    return end_object(actor, ended(ended::why::unreferenced));
  actor.flags |= cell::stopped;
  state.own.add(tasks::counted::ended, 1);
  if (thread_counts* const counts = system.counts_here()) [[unlikely]]
    counts->of_class(*actor.type).ended.add(1);
  actor.type->destroy(actor.object());
}

// The act of all waits for a future.
struct future_act : tasks::future_wait {
  static constexpr message::handler value = &future_wait::act_on;
};

// Resumes the actor's suspended call from a wait for a future, as the wait's own `act` would,
// without the calls between them: most waits that a turn ends are for an answer or a result.
// Returns false, and does nothing, if `mail` is another message. On the fast path, which no stop
// that discards takes.
TROUPE_INLINE bool resume_from_future(tasks::running_state& state, tasks::async_call& call,
                                      message& mail) noexcept {
  if (mail.act != future_act::value || call.awaited != &mail || observe::tracing()) return false;
  tasks::coroutine& waiter = *call.awaited->waiter;
  call.awaited = nullptr;  // as suspension::end, but for making the coroutine ready
  call.refill();
  // order: relaxed  for running_handlers, a snapshot
  state.method.store(call.call.act, std::memory_order_relaxed);
  call.start(waiter);
  if (call.done) [[unlikely]] {
    state.running_call = nullptr;
    end_resumed(call);
  }
  return true;
}

// The turn of a suspended actor for which one urgent message came, when nothing else takes the turn
// off the fast path.
template <bool Counted>
TROUPE_NOINLINE sched::after_turn go_on(activation& active) noexcept {
  tasks::running_state& state = tasks::running_here();
  state.active = &active;
  // order: relaxed (both)  for running_handlers, a snapshot; the thread's own
  state.actor.store(active.actor, std::memory_order_relaxed);
  message& mail = active.pop_urgent();
  tasks::async_call& call = *active.suspended;
  state.running_call = &call;  // a branch of this call may resume
  bool resumed = false;
  if constexpr (!Counted) resumed = resume_from_future(state, call, mail);
  if (!resumed) {
    thread_counts* counts = nullptr;
    if constexpr (Counted) counts = counts_in_turn(state, actor_system::of(*active.actor));
    handle_urgent(state, counts, active, mail);
  }
  state.running_call = nullptr;  // a resumed branch does not reset this itself
  // order: relaxed  as above
  if (is_suspended(state, active) && !state.unusual.load(std::memory_order_relaxed)) {
    state.own.add(tasks::counted::messages, 1);
    return leave_turn(state, sched::after_turn::waits);
  }
  return run_on(state, active, 1, false);
}

// The rest behind the first messages of a list: how many more there may be before the first
// look at the clock, and the link of the next one.
struct rest_of_list {
  unsigned left;
  std::uintptr_t link;
};

// Handles the first messages of the list, up to the first look at the clock. `counts` are null,
// unless Counted.
template <bool Counted>
TROUPE_INLINE rest_of_list handle_up_to(tasks::running_state& state, activation& active,
                                        cell& actor, unsigned left,
                                        thread_counts* counts) noexcept {
  std::uintptr_t link = active.first();
  for (; link != 0; link = active.first()) {
    // order: relaxed  a stop need not be seen by the very next message
    if (left == 0 || state.unusual.load(std::memory_order_relaxed) || activation::is_urgent(link))
        [[unlikely]]
      break;
    --left;
    message& mail = active.pop_ordinary(link);
    if constexpr (Counted) {
      handle_counted(state, *counts, actor, actor.object(), mail);
    } else {
      handle(state, actor.object(), mail);
    }
  }
  return {left, link};
}

// Memory for counts has run out.
TROUPE_NOINLINE rest_of_list handle_uncounted(tasks::running_state& state, activation& active,
                                              unsigned left) noexcept {
  return handle_up_to<false>(state, active, *active.actor, left, nullptr);
}

template <bool Counted>
TROUPE_INLINE rest_of_list handle_first(tasks::running_state& state, activation& active,
                                        cell& actor, unsigned all) noexcept {
  if constexpr (!Counted) {
    return handle_up_to<false>(state, active, actor, all, nullptr);
  } else {
    auto* counts = static_cast<thread_counts*>(state.counted);
    if (counts == nullptr) [[unlikely]] {
      counts = find_counts(state, actor_system::of(actor));
      if (counts == nullptr) return handle_uncounted(state, active, all);
    }
    const rest_of_list rest = handle_up_to<true>(state, active, actor, all, counts);
    // If more waits, the rest of the turn does this (handle_batch).
    if (rest.link == 0) [[likely]] {
      active.length.set(0);
      if (rest.left != all) keep_last(state, actor);
    } else {
      active.length.subtract(all - rest.left);
    }
    return rest;
  }
}

// The rest of a turn that began on the fast path and is not simply out of mail.
TROUPE_INLINE sched::after_turn leave_fast_path(tasks::running_state& state, activation& active,
                                                rest_of_list rest, unsigned handled) noexcept {
  cell& actor = *active.actor;
  if (is_suspended(state, active)) {
    state.own.add(tasks::counted::messages, handled);
    // order: relaxed  the next turn looks by itself
    state.unusual.store(false, std::memory_order_relaxed);
    return leave_turn(state, sched::after_turn::waits);
  }
  if (rest.link == 0 && active.marks == activation::told_unreferenced) {
    const auto ask = [&] {
      return next_step_without_mail(actor.refs, mailbox(actor.word), active, !actor.alive());
    };
    step_without_mail next = ask();
    if (next == step_without_mail::ends) {
      end_on_fast_path(state, actor_system::of(actor), actor);
      // the destructor may have sent to its actor
      next = active.empty() ? ask() : step_without_mail::collects;
    }
    if (next == step_without_mail::goes) {
      state.own.add(tasks::counted::messages, handled);
      // order: relaxed  the next turn looks by itself
      state.unusual.store(false, std::memory_order_relaxed);
      return leave_turn(state, sched::after_turn::gone);
    }
  }
  return run_on(state, active, handled, handled != 0 && rest.left != 0);
}

// A turn that does not begin on the fast path, but for the resumption of a call.
template <bool Counted>
TROUPE_INLINE sched::after_turn run_slowly(tasks::running_state& state, activation& active,
                                           bool fast_path) noexcept {
  const bool goes_on = fast_path && active.marks == (activation::waits | activation::has_urgent);
  return goes_on ? go_on<Counted>(active) : run_on(state, active, 0, false);
}

// These two in a runtime whose turns a flight recorder keeps. Until the scheduler disposes of the
// actor, its slot still has its number. `method` is null afterwards if the turn handled the
// runtime's own mail alone.
TROUPE_NOINLINE sched::after_turn leave_fast_path_recorded(tasks::running_state& state,
                                                           activation& active, rest_of_list rest,
                                                           unsigned handled) noexcept {
  // order: relaxed  the thread's own
  if (handled == 0) state.method.store(nullptr, std::memory_order_relaxed);
  const std::int64_t before = state.own[tasks::counted::messages];
  const sched::after_turn after = leave_fast_path(state, active, rest, handled);
  record_turn(state, active, before, after);
  return after;
}
template <bool Counted>
TROUPE_NOINLINE sched::after_turn run_slowly_recorded(tasks::running_state& state,
                                                      activation& active, bool fast_path) noexcept {
  state.method.store(nullptr, std::memory_order_relaxed);  // order: relaxed  the thread's own
  const std::int64_t before = state.own[tasks::counted::messages];
  const sched::after_turn after = run_slowly<Counted>(state, active, fast_path);
  record_turn(state, active, before, after);
  return after;
}

// Apart from `run`, which therefore needs no registers of its own, and saves none for a turn that
// resumes a call.
template <bool Counted, bool Recorded>
TROUPE_NOINLINE sched::after_turn run_fast_path(activation& active, unsigned flags) noexcept {
  tasks::running_state& state = tasks::running_here();
  cell& actor = *active.actor;
  state.active = &active;
  // order: relaxed  for running_handlers, a snapshot
  state.actor.store(&actor, std::memory_order_relaxed);
  const rest_of_list rest = handle_first<Counted>(state, active, actor, first_look(flags));
  const unsigned handled = first_look(flags) - rest.left;
  if (rest.link == 0 && active.marks == 0 && !mailbox(actor.word).has_mail(active)) [[likely]] {
    // An actor that was quick may have become slow. For a turn of one message that does not matter;
    // for a turn of several it does.
    state.own.add(tasks::counted::messages, handled);
    if (rest.left < cell::quick && (actor.flags & cell::quick) != 0 &&
        (turn_here().saw_slow_turns || ++turn_here().unlooked == turns_between_clock_checks))
        [[unlikely]]
      check_clock(turn_here(), actor);
    if constexpr (Recorded) record_quick_turn(state, active, handled);
    return leave_turn(state, sched::after_turn::quiet);
  }
  if constexpr (Recorded) {
    return leave_fast_path_recorded(state, active, rest, handled);
  } else {
    return leave_fast_path(state, active, rest, handled);
  }
}

// The scheduler's entry. Most turns are a few quick messages: this handles them, up to the first
// look at the clock, with as few checks as possible.
template <bool Counted, bool Recorded>
sched::after_turn run(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  const unsigned flags = active.actor->flags;
  tasks::running_state& state = tasks::running_here();
  const bool fast_path = takes_fast_path(state, flags, actor_system::of(*active.actor));
  if ((active.marks & ~activation::told_unreferenced) != 0 || !fast_path) [[unlikely]] {
    if constexpr (Recorded) {
      return run_slowly_recorded<Counted>(state, active, fast_path);
    } else {
      return run_slowly<Counted>(state, active, fast_path);
    }
  }
  return run_fast_path<Counted, Recorded>(active, flags);
}

bool deactivate(sched::runnable& item) {
  auto& active = static_cast<activation&>(item);
  mailbox box(active.actor->word);
  if (!suspends(active)) {
    if (!box.rest(active)) return false;
    free_activation(active);
    return true;
  }
  // The actor keeps its activation: the end of its wait must need no memory.
  if (active.suspended != nullptr && !active.suspended->is_listed()) {
    if (active.actor->type == &spawned_type && fall_asleep(active)) return true;
    actor_system::of(*active.actor).waiting.add(*active.suspended, active);
  }
  if (active.suspended == nullptr) {
    TROUPE_INVARIANT(optional_state::of(*active.actor).listed, "waiting_lists.S1");
    optional_state::of(*active.actor).parked_as = &active;
  }
  const bool is_searched = waits_for_others(active.suspended);
  actor_system& system = actor_system::of(*active.actor);
  // From here the actor is in no queue, and no worker owns it until mail comes that wakes it.
  active.where = sched::run_state::elsewhere;
  // order: relaxed (both)  the thread that wakes it sees the parked state first
  sched::worker* const before = active.home_worker.load(std::memory_order_relaxed);
  active.home_worker.store(nullptr, std::memory_order_relaxed);
  if (!active.may_run() && box.park(active)) {
    // A search that came before the park did not see this actor. From here on another thread may
    // run the activation, and may free it: do not touch it.
    if (is_searched) search_after_park(system);
    return true;
  }
  // order: relaxed  the actor was not parked: its activation is still ours
  active.home_worker.store(before, std::memory_order_relaxed);
  return false;
}

bool pending(const sched::runnable& item) {
  auto& active = const_cast<activation&>(static_cast<const activation&>(item));
  mailbox box(active.actor->word);
  return active.suspended == nullptr ? box.has_mail(active) : box.has_urgent_mail(active);
}

void free_slot(cell& actor) noexcept {
  actor_system& system = actor_system::of(actor);
  if (has_optional_state(actor) && optional_state::of(actor).listed) system.waiting.remove(actor);
  free_cell(actor);
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
  actor_system& system = actor_system::of(actor);
  mailbox box(actor.word);
  do {
    if (box.has_mail(active)) collect(active);
    for (std::uintptr_t link = active.take_all().oldest; link != 0;) {
      message& mail = *activation::as_message(link);
      const bool ours = activation::is_urgent(link) || is_ours(mail);
      link = activation::after(mail);
      if (ours) {
        mail.act(&mail, nullptr, message_act::discard);
      } else {
        make_dead_letter(system, actor, mail);
      }
    }
    // The destructor of a discarded message may have sent to the same actor.
  } while (!active.empty() || !(active.suspended == nullptr ? box.rest(active) : box.park(active)));
  if (active.suspended == nullptr) free_activation(active);
}

}  // namespace

void report_failure(message::handler method, std::exception_ptr failure) noexcept {
  cell& actor = *current_cell();
  fail(actor, method, std::move(failure));
}

const sched::runnable_vtable turn_type{&run<false, false>, &deactivate, &pending, &dispose,
                                       &discard};
const sched::runnable_vtable counted_turn_type{&run<true, false>, &deactivate, &pending, &dispose,
                                               &discard};
const sched::runnable_vtable recorded_turn_type{&run<false, true>, &deactivate, &pending, &dispose,
                                                &discard};
const sched::runnable_vtable recorded_counted_turn_type{&run<true, true>, &deactivate, &pending,
                                                        &dispose, &discard};

}  // namespace troupe::actor
