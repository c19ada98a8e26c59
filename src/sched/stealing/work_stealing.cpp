// Read from `work` down, which is a worker's life: it runs turns until its queue is empty
// (run_queue_dry), now and then looks at the rest of the pool (housekeeping, rebalance), and finds
// new work (take_work: from a call, the inbox, I/O, or by stealing). idle_life.hpp has the steps in
// between.
#include "sched/stealing/work_stealing.hpp"

#include <algorithm>
#include <utility>

#include "base/atomics.hpp"
#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "base/thread_name.hpp"
#include "base/threads/crash_stack.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched {
namespace {

// xorshift: good enough for choosing a victim.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// Owner: adds to a counter that it alone writes, and returns the sum.
std::uint64_t add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
  // order: relaxed  a statistic; publishes nothing
  const std::uint64_t sum = counter.load(std::memory_order_relaxed) + n;
  counter.store(sum, std::memory_order_relaxed);
  return sum;
}

}  // namespace

work_stealing::work_stealing(outstanding_work& alive, runtime_host& host, timekeeper* time) noexcept
    : alive_(alive), runtime_(host), caller_(*this, time) {}

// Delegates to the private constructor: then, if a thread cannot be started, the destructor runs
// and ends those that were.
work_stealing::work_stealing(const work_stealing_options& options, outstanding_work& alive,
                             runtime_host& host)
    : work_stealing(alive, host, options.time) {
  idle_workers_.set_searchers_max(1 + (options.workers - 1) / static_cast<unsigned>(group_workers));
  workers_.reserve(options.workers);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers_.push_back(&worker::take_from_free_list(*this, idle_workers_.lonely(),
                                                    (options.seed + i) * 0x9E3779B97F4A7C15u));
    workers_.back()->number = i;
  }
  if (caller_.is_used()) return;
  for (worker* w : workers_) {
    w->thread = std::thread([this, w] {
      const auto number = static_cast<unsigned>(w->number + 1);
      base::name_this_thread("worker", number);
      base::worker_number = number;
      base::make_crash_stack();
      work(*w);
    });
  }
}

work_stealing::~work_stealing() {
  shut_down();
  for (worker* w : workers_) {
    waiting_operations::let_go(w->waits);
    worker::put_on_free_list(*w);
  }
}

void work_stealing::submit(runnable& item) noexcept {
  worker* self = worker::current();
  if (self == nullptr || self->executor != this || !self->submit(item)) submit_to_any(item);
}

void work_stealing::submit_to_any(runnable& item) noexcept {
  alive_.enter();
  inbox_.push(item);
  wake(idle_workers_.call());
}

void work_stealing::submit_to_sleeper(runnable& item) noexcept {
  alive_.enter();
  worker* const sleeper = idle_workers_.call_beside([&item](worker& woken) { woken.gift = &item; });
  if (sleeper != nullptr) return wake(sleeper);
  inbox_.push(item);
  wake(idle_workers_.call());
}

void work_stealing::shut_down() {
  // order: seq_cst  before the notifies; a sleeper looks again after each of its wake-ups
  if (ending_.exchange(true, std::memory_order_seq_cst)) return;
  for (worker* w : workers_) notify(*w);
  for (worker* w : workers_) {
    if (w->thread.joinable()) w->thread.join();
  }
  if (caller_.is_used() && !workers_.empty()) caller_.end(*workers_.front());
  const auto discard = [this](runnable& item) {
    item.type->discard(item);
    if (alive_.leave()) runtime_.out_of_work();
  };
  for (worker* w : workers_) {
    // a call gave it this after it had ended
    if (runnable* const item = std::exchange(w->gift, nullptr)) discard(*item);
  }
  for (runnable* item = inbox_.take_all(); item != nullptr;) {
    runnable* next = item->next;
    discard(*item);
    item = next;
  }
}

void work_stealing::work(worker& self) {
  worker::set_current(&self);
  idle_life<work_stealing, worker> idle(*this, self);
  while (idle.find_work()) {
    run_queue_dry(self);
    become_idle(self);
  }
  worker::set_current(nullptr);
}

// Runs turns until the worker's queue and the inbox are empty. The worker is inside its lock,
// except during turns. False: the worker of a caller returns, and may have left work.
bool work_stealing::run_queue_dry(worker& self) {
  serve(self);
  self.lock.enter();
  for (;;) {
    if (self.queue.empty()) [[unlikely]] {
      if (ending()) break;
      if (self.io_keeps_coming && poll_once_more(self)) continue;
      if (self.expects_mail && await_mail(self)) continue;
      self.deactivate_all();
      if (self.queue.empty()) {
        self.lock.leave();
        if (!take_inbox(self)) return true;
        self.lock.enter();
        continue;
      }
    }
    bool backlog = false;
    runnable* const item = &self.queue.take(backlog);
    item->where = run_state::running;
    self.lock.leave();
    // This turn may take long: with work behind it another worker must keep watch (P11).
    if (backlog && self.unwatched()) [[unlikely]]
      attend();
    const after_turn after = item->type->run(*item);
    const std::uint64_t turns = add(self.turns, 1);
    if (turns >= self.look_after && (!self.wake_hints.empty() || inbox_has_some() ||
                                     turns >= self.rebalance_after)) [[unlikely]] {
      const bool polls = housekeeping(self, turns);
      // `ending` is also checked here. The queue may never become empty, since each turn may wake
      // another runnable; and a turn that ends as quiet does not reach the check below.
      if (polls || ending()) {
        // Put the runnable away first: events of the poller may be for it.
        self.lock.enter();
        finish_turn(self, *item, after);
        if (ending()) break;
        self.lock.leave();
        if (caller_.is_used() && caller_.returns()) [[unlikely]]
          return false;
        poll(self);
        self.lock.enter();
        continue;
      }
    }
    self.lock.enter();
    if (is_quiet(after)) [[likely]] {
      self.defer_deactivation(*item, after == after_turn::quiet ? run_state::deactivation_deferred
                                                                : run_state::waiting);
      continue;
    }
    // for example after the first turn of a task that waits for nothing
    if (after == after_turn::gone && item->deferred_slot < 0) {
      self.part_with_unseen();
      item->type->dispose(*item);
    } else {
      finish_turn(self, *item, after);
    }
    if (ending()) break;
  }
  self.lock.leave();
  discard_all(self);
  return true;
}

// At a stop each operation whose event was fetched completes. Then the owner discards the queued
// runnables. The destructors of discarded work may queue more.
void work_stealing::discard_all(worker& self) {
  serve(self);
  self.lock.enter();
  for (;;) {
    self.deactivate_all();
    runnable* item = self.queue.pop();
    if (item == nullptr) break;
    self.part_with(*item);
    self.lock.leave();
    item->type->discard(*item);
    self.lock.enter();
  }
  self.lock.leave();
}

// After the runnable's turn, inside the lock.
void work_stealing::finish_turn(worker& self, runnable& item, after_turn after) noexcept {
  switch (after) {
    case after_turn::quiet:
      self.defer_deactivation(item, run_state::deactivation_deferred);
      break;
    case after_turn::again:
      self.push(item);
      break;
    case after_turn::waits:
      self.defer_deactivation(item, run_state::waiting);
      break;
    case after_turn::gone:
      self.part_with(item);
      item.type->dispose(item);
      break;
  }
}

// Work from other threads must not wait for another turn (P11). But while turns are quick and each
// look finds work, the worker looks only after every few turns: a look also costs the senders a
// cache line. True when it is time to look into the poller, or when it has stolen events.
bool work_stealing::housekeeping(worker& self, std::uint64_t turns) {
  const std::int64_t now = base::now_ns();
  const bool hinted = !self.wake_hints.empty();
  if (hinted) {
    self.lock.enter();
    const unsigned passed_on = self.take_wake_hints().passed_on;
    self.lock.leave();
    if (passed_on != 0) attend();
  }
  if (take_inbox(self) || hinted) {
    const auto done = static_cast<std::int64_t>(turns - self.looked_turns);
    self.look_after = turns + (now - self.looked_at_ns < done * quick_turn_ns ? turns_a_look : 1);
    self.looked_at_ns = now;
    self.looked_turns = turns;
  }
  if (turns < self.rebalance_after) return false;
  rebalance(self, now, turns);
  if (!self.fetched.empty()) return true;
  if (caller_.is_used() && caller_.is_due(now)) [[unlikely]]
    return true;
  // order: relaxed  a hint
  if (poller_.load(std::memory_order_relaxed) == nullptr || now - self.polled_at_ns < poll_every_ns)
    return false;
  self.polled_at_ns = now;
  return true;
}

// Fairness among busy workers. When one worker has many actors in its queue and another one few,
// the few would be served far more often, and that would last, since no worker is idle and steals.
void work_stealing::rebalance(worker& self, std::int64_t now, std::uint64_t turns) {
  const std::int64_t span = now - self.rebalanced_at_ns;
  const auto done = static_cast<std::int64_t>(turns - self.rebalanced_turns);
  // order: relaxed  a hint
  const bool serves = poller_.load(std::memory_order_relaxed) != nullptr;
  // The next comparison comes after about as many turns as fit into that time.
  const std::int64_t every = serves ? rebalance_beside_io_ns : rebalance_every_ns;
  self.rebalance_after =
      turns + static_cast<std::uint64_t>(std::clamp<std::int64_t>(
                  done * every / std::max<std::int64_t>(span, 1), 1, turns_per_rebalance));
  const auto mine = static_cast<std::int64_t>(self.queue.count()) * span / done;
  // When the queue takes long, a single turn may also take long: then the comparison below decides.
  const bool is_quick = mine <= rescue_every_ns / 4 && workers_.size() > 1;
  if (is_quick && now - self.rescued_at_ns >= rescue_every_ns && take_from_stuck(self, now)) return;
  if (span < (mine < every ? every : rebalance_every_ns)) return;
  self.rebalanced_at_ns = now;
  self.rebalanced_turns = turns;
  if (span > rebalance_memory_ns || workers_.size() == 1) return;
  const imbalance bound = serves ? fine : coarse;
  worker* victim = nullptr;
  bool is_stuck = false;
  const auto load_of = [](const worker& other, bool stuck) noexcept {
    return stuck ? other.backlog() : other.queue.count();
  };
  std::int64_t most = mine * bound.percent / 100 + bound.worth_ns - 1;
  const std::size_t start = next_random(self.random) % workers_.size();
  for (std::size_t i = 0; i < std::min<std::size_t>(bound.looks, workers_.size()); ++i) {
    worker& candidate = *workers_[(start + i) % workers_.size()];
    const pace theirs =
        &candidate == &self ? pace{} : pace::of(candidate, now, rebalance_memory_ns);
    if (theirs.backlog_ns <= most || load_of(candidate, theirs.is_stuck) == 0) continue;
    most = theirs.backlog_ns;
    is_stuck = theirs.is_stuck;
    victim = &candidate;
  }
  if (victim == nullptr) return;
  // A stuck worker is running one more, and serves none of its queue.
  const std::size_t theirs = load_of(*victim, is_stuck) + (is_stuck ? 1 : 0),
                    ours = is_stuck ? 0 : self.queue.count();
  if (theirs <= ours + 1) return;
  steal_from(self, *victim, worker::share::half, static_cast<unsigned>((theirs - ours) / 2),
             is_stuck ? events_too::yes : events_too::no,
             is_stuck ? approach::revoke : approach::ask);
  attend();  // the theft took the victim's wake hints, and may have passed some on
}

// Runnables behind a turn that does not end get no turns, while all others do. A busy worker takes
// all of them, since no other worker does. (A searcher takes half, and is busy then.)
bool work_stealing::take_from_stuck(worker& self, std::int64_t now) {
  self.rescued_at_ns = now;
  const std::size_t at = next_random(self.random) % workers_.size();
  worker* const next = workers_[workers_[at] == &self ? (at + 1) % workers_.size() : at];
  // order: relaxed  a hint
  const std::uint64_t turns_before =
      std::exchange(self.watched_turns, next->turns.load(std::memory_order_relaxed));
  worker* const victim = std::exchange(self.watched, next);
  if (victim == nullptr || !victim->has_some_left()) return false;
  // order: relaxed (both)  hints
  if (!victim->busy.load(std::memory_order_relaxed) ||
      victim->turns.load(std::memory_order_relaxed) != turns_before)
    return false;
  if (!steal_from(self, *victim, worker::share::all, worker::steal_max, events_too::yes,
                  approach::revoke))
    return false;
  attend();  // the theft took the victim's wake hints, and may have passed some on
  return true;
}

bool work_stealing::take_work(worker& self) {
  return take_gift(self) || take_inbox(self) ||
         (self.io_keeps_coming = take_io(self, false, io_in::all_shards)) || steal_somewhere(self);
}

// Inside the lock, which it leaves meanwhile. True when the queue may have something.
// An actor of this worker and an actor of another worker feed each other through a bounded mailbox.
// This worker has nothing to do until the other one has handled a message, and that takes less time
// than to sleep and be woken. If this worker slept, its actors, the senders, would be deactivated,
// and the receiver's worker would wake each of them into its own queue, behind the receiver.
bool work_stealing::await_mail(worker& self) {
  self.expects_mail = false;
  // order: relaxed  its own
  const std::uint64_t turns = self.turns.load(std::memory_order_relaxed) - self.awaited_turns;
  if (workers_.size() == 1) return false;
  if (self.waits_left_out != 0) {
    --self.waits_left_out;
    return false;
  }
  std::int64_t now = base::now_ns();
  if (now - self.awaited_at_ns < static_cast<std::int64_t>(turns) * awaiting_turn_ns) return false;
  self.lock.leave();
  bool found = false;
  const std::int64_t end = now + await_mail_ns;
  for (; !found && !ending() && now < end; now = base::now_ns()) {
    found = !self.wake_hints.empty() || inbox_has_some() || steal_awake(self, now);
    for (int i = 0; !found && i < awake_pauses; ++i) base::std_atomics::pause();
  }
  self.vain_waits = found ? 0 : std::min(self.vain_waits + 1, vain_waits_max);
  self.waits_left_out = (1u << self.vain_waits) - 1;
  if (inbox_has_some()) take_inbox(self);
  self.awaited_at_ns = now;
  self.awaited_turns += turns;
  self.lock.enter();
  if (found) {
    const unsigned passed_on = self.take_wake_hints().passed_on;
    if (passed_on != 0) {
      self.lock.leave();
      attend();
      self.lock.enter();
    }
    self.expects_mail = self.queue.empty();
  }
  return found;
}

// Steals a quarter of a backlog: the stolen part stays with this worker, and more would only be
// stolen back.
bool work_stealing::steal_awake(worker& self, std::int64_t now) {
  worker& victim = *workers_[next_random(self.random) % workers_.size()];
  // order: relaxed  a hint
  if (&victim == &self || !victim.busy.load(std::memory_order_relaxed)) return false;
  // order: relaxed (all)  hints
  const std::uint64_t turns = victim.turns.load(std::memory_order_relaxed);
  const auto done =
      static_cast<std::int64_t>(turns - victim.seen_turns.load(std::memory_order_relaxed));
  const std::int64_t span = now - victim.seen_at_ns.load(std::memory_order_relaxed);
  const std::size_t count = victim.queue.count();
  if (done == 0 || static_cast<std::int64_t>(count) * span < worth_stealing_awake_ns * done)
    return false;
  const auto few = static_cast<unsigned>(std::min<std::size_t>(count / 4 + 1, worker::steal_max));
  if (!steal_from(self, victim, worker::share::half, few, events_too::no, approach::ask))
    return false;
  attend();  // the theft took the victim's wake hints, and may have passed some on
  return true;
}

bool work_stealing::take_gift(worker& self) {
  runnable* const item = std::exchange(self.gift, nullptr);
  if (item == nullptr) return false;
  item->next = nullptr;
  take_list(self, item);
  return true;
}

bool work_stealing::take_inbox(worker& self) {
  runnable* item = inbox_.take_all();
  if (item == nullptr) return false;
  take_list(self, item);
  return true;
}

// Takes runnables that other threads have submitted, and counted.
void work_stealing::take_list(worker& self, runnable* item) {
  // order: relaxed  its own
  const bool was_busy = self.busy.load(std::memory_order_relaxed);
  if (!was_busy) show_busy(self);
  std::int64_t taken = 0;
  self.lock.enter();
  while (item != nullptr && self.make_room(1)) {
    runnable* next = item->next;
    self.adopt(*item);
    self.push(*item);
    item = next;
    ++taken;
  }
  self.lock.leave();
  observe::trace(observe::event::arrived, nullptr, static_cast<std::uint64_t>(taken));
  alive_.take_over(taken, was_busy);
  if (item != nullptr) [[unlikely]]
    put_back(item);
}

// Memory is out, and this worker's queue is full: an idle worker has room, or this worker has when
// its queue is empty.
void work_stealing::put_back(runnable* list) noexcept {
  while (list != nullptr) {
    runnable* next = list->next;
    inbox_.push(*list);
    list = next;
  }
  wake(idle_workers_.call());
}

// A look at a victim costs its owner cache lines. Where there are many workers, a searcher looks at
// a few at random first, most of them in its own group, and at all of them only before it sleeps:
// else no search would find the work of a worker that the choice leaves out (R4).
bool work_stealing::steal_somewhere(worker& self) {
  const std::size_t count = workers_.size();
  if (count == 1) return false;
  const std::int64_t now = base::now_ns();
  if (steal_by_hint(self, now)) return true;
  if (count > group_workers) {
    const std::size_t group = self.number / group_workers * group_workers;
    const std::size_t near = std::min(group_workers, count - group);
    for (unsigned i = 0; i < near_victims + far_victims; ++i) {
      const std::uint64_t random = next_random(self.random);
      const std::size_t at = i < near_victims ? group + random % near : random % count;
      if (steal_if_worth(self, *workers_[at], now)) return true;
    }
  }
  const std::size_t start = next_random(self.random) % count;
  for (std::size_t i = 0; i < count; ++i) {
    if (steal_if_worth(self, *workers_[(start + i) % count], now)) return true;
  }
  return false;
}

bool work_stealing::steal_if_worth(worker& self, worker& victim, std::int64_t now) {
  // order: relaxed  a hint; an idle worker has nothing (W3)
  if (&victim == &self || !victim.busy.load(std::memory_order_relaxed)) return false;
  const pace seen = pace::of(victim, now);
  const std::int64_t worth =
      seen.turn_ns < short_turn_ns ? worth_stealing_short_ns : worth_stealing_ns;
  if (seen.backlog_ns < worth || !victim.has_some_left() ||
      !steal_from(self, victim, worker::share::half, worker::steal_max, events_too::yes,
                  approach_to(seen.turn_ns)))
    return false;
  self.victim = &victim;
  self.victim_turn_ns = seen.turn_ns;
  return true;
}

// The call that made this worker a searcher passed it the length of the victim's turns. Turns that
// the victim has run since may show another length.
bool work_stealing::steal_by_hint(worker& self, std::int64_t now) {
  worker* const victim = std::exchange(self.victim, nullptr);
  if (victim == nullptr) return false;
  const pace seen = pace::of(*victim, now);
  if (seen.turn_ns != 0) self.victim_turn_ns = seen.turn_ns;
  const std::size_t left = victim->backlog();
  if (!is_worth_a_call(left, self.victim_turn_ns) ||
      !steal_from(self, *victim, worker::share::half, worker::steal_max, events_too::yes,
                  approach_to(self.victim_turn_ns)))
    return false;
  self.victim = victim;
  return true;
}

bool work_stealing::is_worth_a_call(std::size_t left, std::int64_t turn_ns) noexcept {
  return left != 0 && (turn_ns >= pace::stuck_ns ||
                       static_cast<std::int64_t>(left) * turn_ns >= worth_calling_ns);
}

// Calls one sleeper for the work that the victim still has, and one for the work that this worker
// has taken and cannot begin at once. The number of called workers therefore doubles each time, and
// the first of them that finds short turns calls no other.
void work_stealing::hand_on(worker& self) noexcept {
  worker* const victim = std::exchange(self.victim, nullptr);
  if (victim == nullptr) return;
  const std::size_t mine = self.backlog();
  if (is_worth_a_call(victim->backlog(), self.victim_turn_ns))
    call_for(*victim, self.victim_turn_ns);
  if (mine > 1 && is_worth_a_call(mine - 1, self.victim_turn_ns))
    call_for(self, self.victim_turn_ns);
}

void work_stealing::call_for(worker& victim, std::int64_t turn_ns) noexcept {
  wake(idle_workers_.call_beside([&victim, turn_ns](worker& woken) {
    woken.victim = &victim;
    woken.victim_turn_ns = turn_ns;
  }));
}

// False when the owner stays inside its lock, or when another searcher does.
bool work_stealing::enter_as_searcher(worker& victim, approach how) noexcept {
  for (base::std_atomics::patience left;;) {
    if (how == approach::ask ? victim.lock.ask_or_revoke() : victim.lock.try_revoke()) return true;
    // Another searcher needs less time for its steal than this one for the search of another
    // victim.
    if (!victim.lock.is_revoked() || left.is_over()) return false;
  }
}

// A stolen event is served here, and its actor runs where it is at home: at the victim, unless that
// is stuck and its wake hints are stolen as well. That pays for a worker that has nothing else to
// do, and where the victim is stuck.
bool work_stealing::steal_from(worker& self, worker& victim, worker::share most, unsigned at_most,
                               events_too with, approach how) {
  at_most = std::min(at_most, worker::steal_max);
  // Room is made first, and stays: only the worker itself adopts.
  self.lock.enter();
  const bool room = self.make_room(at_most);
  self.lock.leave();
  if (!room || !enter_as_searcher(victim, how)) return false;
  runnable* list = nullptr;
  const unsigned taken = victim.give(self, list, most, at_most);
  const unsigned events = with == events_too::yes ? victim.fetched.give(self.fetched, at_most) : 0;
  // Counted before the victim can continue and find itself idle (C1).
  // order: relaxed  its own
  if (taken + events != 0 && !self.busy.load(std::memory_order_relaxed)) {
    alive_.enter();
    show_busy(self);
  }
  // Inside the lock: whoever enters it next sees that (for_each_quiet).
  if (taken + events != 0) add(self.begun_steals, 1);
  victim.lock.restore();
  if (taken + events == 0) return false;
  if (events != 0) self.fetched.publish(events);
  self.lock.enter();
  while (list != nullptr) {
    runnable* next = list->next;
    self.adopt(*list);
    self.push(*list);
    list = next;
  }
  self.lock.leave();
  add(self.steals, 1);
  add(self.stolen, taken);
  observe::trace(observe::event::stole, nullptr, taken);
  return true;
}

void work_stealing::attend() noexcept {
  // order: none  as worker::unwatched, even on threads that are no workers
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // order: relaxed  behind the fence
  if (idle_workers_.lonely().load(std::memory_order_relaxed) != 0) wake(idle_workers_.call());
}

bool work_stealing::nothing_left(const worker& self) const noexcept {
  if (workers_.size() == 1) return true;
  base::asymmetric::heavy();
  for (const worker* other : workers_) {
    // order: relaxed  a hint; an idle worker has nothing (W3) but wake hints that came too late
    if (other != &self && other->busy.load(std::memory_order_relaxed) && other->has_some_left())
      return false;
  }
  return true;
}

void work_stealing::show_busy(worker& self) noexcept {
  // Its turns may be longer than before it was idle: its pace is measured anew from now on.
  // order: relaxed  its own
  self.rebalance_after = self.turns.load(std::memory_order_relaxed);
  // From here it is known how long the worker has been in its first turn.
  self.awaited_turns = self.rebalance_after;
  self.awaited_at_ns = base::now_ns();
  // order: relaxed (both)  hints
  self.seen_turns.store(self.rebalance_after, std::memory_order_relaxed);
  self.seen_at_ns.store(self.awaited_at_ns, std::memory_order_relaxed);
  // order: relaxed  a hint
  self.busy.store(true, std::memory_order_relaxed);
  busy_share::set_current(&self.waits);
}

// Before the worker is counted as idle: until then it kept the program alive for the operations
// that it has begun (O2).
void work_stealing::settle_waits(worker& self) noexcept {
  busy_share::set_current(nullptr);
  if (self.waits.is_settled()) return;
  // order: acquire  as take_io
  switch (poller_.load(std::memory_order_acquire)->waiting.settle(self.waits)) {
    case waiting_operations::next::hold:
      return runtime_.hold();
    case waiting_operations::next::release:
      return runtime_.release();
    case waiting_operations::next::nothing:
      return;
  }
}

void work_stealing::become_idle(worker& self) {
  settle_waits(self);
  // order: relaxed  a hint
  self.busy.store(false, std::memory_order_relaxed);
  if (alive_.leave()) runtime_.out_of_work();
}

void work_stealing::wake(worker* sleeper) noexcept {
  if (sleeper == nullptr) return;
  // order: relaxed  a statistic
  sleeper->wakes.fetch_add(1, std::memory_order_relaxed);
  observe::trace(observe::event::woke, nullptr);
  notify(*sleeper);
}

std::uint64_t work_stealing::sum_of(std::atomic<std::uint64_t> worker::*counter) const noexcept {
  std::uint64_t sum = 0;
  // order: relaxed  the locks that are entered between two sums order them
  for (const worker* each : workers_) sum += (each->*counter).load(std::memory_order_relaxed);
  return sum;
}

// Enters the locks as a searcher does, but takes nothing. A runnable that is stolen meanwhile may
// be missed, or looked at twice.
executor::not_quiet work_stealing::for_each_quiet(const std::function<void(runnable&)>& look) {
  not_quiet missed;
  const std::uint64_t steals_before = sum_of(&worker::steals);
  for (worker* searched : workers_) {
    const bool own = searched == worker::current();
    if (own) searched->lock.enter();
    bool inside = own;
    // order: relaxed  a hint; an idle worker does not answer
    approach how =
        searched->busy.load(std::memory_order_relaxed) ? approach::ask : approach::revoke;
    for (int tries = 0; !inside && tries < looks_max; ++tries) {
      inside = enter_as_searcher(*searched, how);
      how = approach::revoke;
    }
    if (!inside) {
      ++missed.threads;
      continue;
    }
    missed.in_flight += searched->for_each_quiet(look);
    own ? searched->lock.leave() : searched->lock.restore();
  }
  if (sum_of(&worker::begun_steals) != steals_before) ++missed.in_flight;
  return missed;
}

// Statistics of the pool's workers.

std::size_t work_stealing::queued() const {
  std::size_t sum = 0;
  for (const worker* counted : workers_) sum += counted->queue.count();
  return sum;
}

std::vector<policy::counters> work_stealing::count() const {
  std::vector<counters> all;
  all.reserve(workers_.size());
  for (const worker* w : workers_) {
    // order: relaxed (all)  statistics
    all.push_back(
        {w->turns.load(std::memory_order_relaxed), w->steals.load(std::memory_order_relaxed),
         w->stolen.load(std::memory_order_relaxed), w->wakes.load(std::memory_order_relaxed),
         w->parks.load(std::memory_order_relaxed), w->queue.count()});
  }
  return all;
}

// Idle workers ask. A common count of the busy ones would be two changes of one word for each time
// that a worker runs dry.
bool work_stealing::anyone_busy() const noexcept {
  // order: relaxed  a hint
  return std::any_of(workers_.begin(), workers_.end(), [](const worker* other) {
    return other->busy.load(std::memory_order_relaxed);
  });
}

std::uint64_t work_stealing::turns_done() const noexcept {
  std::uint64_t sum = 0;
  // order: relaxed  a statistic
  for (const worker* w : workers_) sum += w->turns.load(std::memory_order_relaxed);
  return sum;
}

// The pool's part in I/O: which worker looks into the poller, and which sleeps there
// (docs/protocols/io.md).

// A worker that is always busy looks into the poller from time to time: else events there would
// wait for as long as all workers are busy.
void work_stealing::poll(worker& self) {
  if (self.fetched.empty()) take_io(self, true, io_in::one_shard);
  serve(self);
}

// Serves the events that this worker has fetched, or stolen. Outside of the lock and of the door.
void work_stealing::serve(worker& self) {
  if (caller_.is_used()) [[unlikely]]
    caller_.expire();
  const unsigned events = self.fetched.count();
  if (events == 0) return;
  // Others may take the events that it has not begun, as they may take runnables behind a turn
  // (P11, R4).
  if (events > 1 && self.unwatched()) [[unlikely]]
    attend();
  // order: acquire  as take_io
  poller_.load(std::memory_order_acquire)->serve(self.fetched);
}

// A worker that went to sleep meanwhile may have found the door shut (D2).
void work_stealing::leave_door(poller& io) noexcept {
  io.door.leave();
  // order: relaxed  behind the door's fence
  if (idle_workers_.lonely().load(std::memory_order_relaxed) != 0 && unattended()) [[unlikely]]
    wake(idle_workers_.call());
}

// Inside the lock, out of work. A worker that serves many connections finds the next requests here,
// before it has deactivated the actors that the requests are for: io/echo_64 gains 3 %. Where I/O
// is rare the poller is not looked at twice (io_keeps_coming).
bool work_stealing::poll_once_more(worker& self) {
  self.lock.leave();
  self.io_keeps_coming = take_io(self, false, io_in::one_shard);
  serve(self);
  self.lock.enter();
  return !self.queue.empty();
}

bool work_stealing::take_io(worker& self, bool busy, io_in part) {
  // order: acquire  sees the complete poller; pairs with attach/release
  poller* io = poller_.load(std::memory_order_acquire);
  if (io == nullptr) return false;
  if (const unsigned shards = io->shards(); shards > 1) {
    const bool came = io->look(next_shard(self, shards), self.fetched, busy);
    if (came) count_as_busy(self);
    if (came || part == io_in::one_shard) return came;
  }
  if (!io->door.try_enter()) return false;
  if (!io->poll(self.fetched, busy)) {
    leave_door(*io);
    return false;
  }
  take_what_came(self);
  return true;
}

// Workers of one group look into one shard, and each second time into any: a shard whose group is
// stuck in long turns is then found by the others.
unsigned work_stealing::next_shard(worker& self, unsigned shards) const noexcept {
  const std::size_t own = self.number * shards / workers_.size();
  const bool into_own = ++self.looks_into_shards % 2 != 0;
  return static_cast<unsigned>(into_own ? own : next_random(self.random) % shards);
}

void work_stealing::count_as_busy(worker& self) {
  // order: relaxed  its own
  if (self.busy.load(std::memory_order_relaxed)) return;
  alive_.enter();
  show_busy(self);
}

// From here on the events that came are this worker's own: it is counted as busy before it leaves
// the door and serves them, which fills its queue (C1, W3).
void work_stealing::take_what_came(worker& self) {
  count_as_busy(self);
  // order: acquire  as take_io
  leave_door(*poller_.load(std::memory_order_acquire));
}

rested work_stealing::rest(worker& self, const std::chrono::nanoseconds* limit,
                           bool inside) noexcept {
  TROUPE_INVARIANT(!self.has_deferred(), "W4");
  const observe::parked parked_scope;
  // order: relaxed (both)  a statistic, written by the owner
  self.parks.store(self.parks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  // order: acquire  as take_io
  poller* io = poller_.load(std::memory_order_acquire);
  if (caller_.is_used()) [[unlikely]]
    return caller_.rest(self, inside ? io : nullptr);
  if (io != nullptr && inside && io->door.try_enter())
    return rest_inside(*io, self.fetched, self.parker, limit);
  if (limit != nullptr) return self.parker.wait_for(*limit) ? rested::notified : rested::over;
  self.parker.wait();
  return rested::notified;
}

bool work_stealing::unattended() const noexcept {
  // order: acquire  sees the complete poller; pairs with attach/release. Which poller is seen rests
  // on the caller's fence
  const poller* io = poller_.load(std::memory_order_acquire);
  return io != nullptr && io->door.is_open();
}

// The workers that sleep already do so where no I/O comes: one of them must go inside.
void work_stealing::attach(poller& io) {
  for (worker* w : workers_) io.waiting.adopt(w->waits);
  // order: release  publishes the poller; pairs with the acquires of its users
  poller_.store(&io, std::memory_order_release);
  wake(idle_workers_.call());
}

void work_stealing::notify(worker& sleeper) noexcept {
  // order: acquire  that worker sleeps in the poller: it has seen it
  if (sleeper.parker.notify()) poller_.load(std::memory_order_acquire)->wake();
}

}  // namespace troupe::sched
