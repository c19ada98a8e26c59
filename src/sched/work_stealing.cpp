#include "sched/work_stealing.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/invariant.hpp"

namespace troupe::sched {
namespace {

// xorshift: the choice of a victim needs no better.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// order: relaxed  a statistic; publishes nothing
void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

work_stealing::work_stealing(census& alive, std::function<void()> out_of_work)
    : alive_(alive), out_of_work_(std::move(out_of_work)) {}

// Delegates, so that the destructor ends the threads that were started when one cannot be.
work_stealing::work_stealing(const work_stealing_options& options, census& alive, std::function<void()> out_of_work)
    : work_stealing(alive, std::move(out_of_work)) {
  workers_.reserve(options.workers);
  for (unsigned i = 0; i < options.workers; ++i) {
    workers_.push_back(&worker::take_from_shelf(*this, *this, roster_.lonely(), (options.seed + i) * 0x9E3779B97F4A7C15u));
  }
  for (worker* w : workers_) w->thread = std::thread([this, w] { work(*w); });
}

work_stealing::~work_stealing() {
  shut_down();
  for (worker* w : workers_) worker::put_on_shelf(*w);
}

void work_stealing::submit(runnable& item) {
  worker* self = worker::current();
  if (self != nullptr && self->pool == this && self->lock.try_enter()) {
    self->push(item);
    self->lock.leave();
    if (self->unwatched()) self->ask_for_watch();  // this handler may take long (P11)
    return;
  }
  alive_.enter();
  inbox_.push(item);
  wake(roster_.call());
}

void work_stealing::shut_down() {
  // order: seq_cst  in front of the notifies; a sleeper looks again after each of its wake-ups
  if (ending_.exchange(true, std::memory_order_seq_cst)) return;
  for (worker* w : workers_) w->parker.notify();
  for (worker* w : workers_) {
    if (w->thread.joinable()) w->thread.join();
  }
  for (runnable* item = inbox_.take_all(); item != nullptr;) {
    runnable* next = item->next;
    item->type->discard(*item);
    if (alive_.leave()) out_of_work_();
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

// Runs until nothing is left here, nor in the inbox. The lock is left only for the turns themselves.
void work_stealing::run_queue_dry(worker& self) {
  unsigned turns = 0;
  self.lock.enter();
  while (!ending()) {
    runnable* item = self.queue.pop();
    if (item == nullptr) {
      self.settle_all();
      item = self.queue.pop();
    }
    if (item != nullptr) item->where = place::running;
    self.keep_room();
    const bool backlog = !self.queue.empty();
    self.lock.leave();
    if (item == nullptr) {
      if (!take_inbox(self)) return;
      self.lock.enter();
      continue;
    }
    // Nobody can tell how long this turn takes: with work behind it somebody must keep watch (P11).
    if (backlog && self.unwatched()) [[unlikely]] attend();
    const after_turn after = item->type->run(*item);
    add(self.turns, 1);
    if (++turns % turns_a_look == 0) [[unlikely]] housekeeping(self, turns);
    self.lock.enter();
    switch (after) {
      case after_turn::again: self.push(*item); break;
      case after_turn::quiet: self.linger(*item); break;
      case after_turn::gone:
        self.forget(*item);
        item->type->dispose(*item);
        break;
    }
  }
  // A stop: what is queued is thrown away by its owner. The destructors of what is thrown away may make more.
  for (;;) {
    self.settle_all();
    runnable* item = self.queue.pop();
    if (item == nullptr) break;
    self.lock.leave();
    item->type->discard(*item);
    self.lock.enter();
  }
  self.lock.leave();
}

void work_stealing::housekeeping(worker& self, unsigned turns) {
  if (!self.nudges.empty()) {
    self.lock.enter();
    self.take_nudges();
    self.lock.leave();
  }
  take_inbox(self);
  if (turns % turns_a_stir == 0 && workers_.size() > 1) stir(self);
}

// Fairness among busy workers: when one has many actors in its round and another one few, the few would
// be served far more often for ever, since nobody is idle and steals.
void work_stealing::stir(worker& self) {
  const std::int64_t now = base::now_ns();
  const std::int64_t span = now - self.stirred_at_ns;
  if (span < stir_every_ns) return;
  // order: relaxed  its own
  const std::uint64_t turns = self.turns.load(std::memory_order_relaxed);
  const std::uint64_t done = std::max<std::uint64_t>(turns - self.stirred_turns, 1);
  self.stirred_at_ns = now;
  self.stirred_turns = turns;
  if (span > stir_memory_ns) return;
  std::unique_lock steal(steal_mutex_, std::try_to_lock);
  if (!steal) return;
  const auto mine = static_cast<std::int64_t>(self.queue.count()) * span / static_cast<std::int64_t>(done);
  worker& victim = *workers_[next_random(self.random) % workers_.size()];
  if (&victim == &self || look_at(victim, now, stir_memory_ns).backlog_ns < 2 * mine + stir_worth_ns) return;
  const std::size_t theirs = victim.queue.count(), ours = self.queue.count();
  if (theirs > ours + 1) steal_from(self, victim, static_cast<unsigned>((theirs - ours) / 2));
}

bool work_stealing::take_work(worker& self) { return take_inbox(self) || steal_somewhere(self); }

bool work_stealing::take_inbox(worker& self) {
  runnable* item = inbox_.take_all();
  if (item == nullptr) return false;
  // order: relaxed  its own
  const bool was_busy = self.busy.load(std::memory_order_relaxed);
  if (!was_busy) show_busy(self);
  std::int64_t taken = 0;
  self.lock.enter();
  while (item != nullptr) {
    runnable* next = item->next;
    self.push(*item);
    item = next;
    ++taken;
  }
  self.lock.leave();
  alive_.take_over(taken, was_busy);
  return true;
}

bool work_stealing::steal_somewhere(worker& self) {
  if (workers_.size() == 1) return false;
  std::lock_guard steal(steal_mutex_);
  const std::size_t start = next_random(self.random) % workers_.size();
  const std::int64_t now = base::now_ns();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    worker& victim = *workers_[(start + i) % workers_.size()];
    // order: relaxed  a hint; an idle worker has nothing (W3)
    if (&victim == &self || !victim.busy.load(std::memory_order_relaxed)) continue;
    const pace seen = look_at(victim, now);
    const std::int64_t worth = seen.turn_ns < short_turn_ns ? worth_stealing_short_ns : worth_stealing_ns;
    if (seen.backlog_ns >= worth && steal_from(self, victim, worker::steal_max)) return true;
  }
  return false;
}

// What the victim has to do, by its pace since it was last looked at.
work_stealing::pace work_stealing::look_at(worker& victim, std::int64_t now, std::int64_t memory) {
  // order: relaxed  a hint
  const std::uint64_t turns = victim.turns.load(std::memory_order_relaxed);
  const std::int64_t span = now - victim.seen_at_ns;
  const std::uint64_t done = turns - victim.seen_turns;
  // Stuck in one turn: whatever waits there is worth saving.
  if (done == 0 && span >= stuck_ns && span <= memory_ns) return {worth_stealing_short_ns * 1000, span};
  if (done != 0 || span > memory) {
    victim.seen_turns = turns;
    victim.seen_at_ns = now;
  }
  if (done == 0 || span > memory) return {};
  const std::int64_t turn_ns = span / static_cast<std::int64_t>(done);
  return {static_cast<std::int64_t>(victim.queue.count()) * turn_ns, turn_ns};
}

bool work_stealing::steal_from(worker& self, worker& victim, unsigned at_most) {
  if (!victim.lock.try_revoke()) return false;
  runnable* list = nullptr;
  const unsigned taken = victim.give(self, list, std::min(at_most, worker::steal_max));
  // Counted before the victim can go on and find itself idle (C1).
  // order: relaxed  its own
  if (taken != 0 && !self.busy.load(std::memory_order_relaxed)) {
    alive_.enter();
    show_busy(self);
  }
  victim.lock.restore();
  if (taken == 0) return false;
  self.lock.enter();
  while (list != nullptr) {
    runnable* next = list->next;
    self.push(*list);
    list = next;
  }
  self.lock.leave();
  add(self.steals, 1);
  add(self.stolen, taken);
  return true;
}

void work_stealing::attend() noexcept {
  // order: relaxed  a hint; a watcher that goes to sleep now has looked after nobody was busy
  if (roster_.lonely().load(std::memory_order_relaxed) != 0) wake(roster_.call());
}

void work_stealing::show_busy(worker& self) noexcept {
  // order: relaxed  hints
  self.busy.store(true, std::memory_order_relaxed);
  busy_.fetch_add(1, std::memory_order_relaxed);
}

void work_stealing::become_idle(worker& self) {
  // order: relaxed  hints
  self.busy.store(false, std::memory_order_relaxed);
  busy_.fetch_sub(1, std::memory_order_relaxed);
  if (alive_.leave()) out_of_work_();
}

void work_stealing::wake(worker* sleeper) noexcept {
  if (sleeper == nullptr) return;
  // order: relaxed  a statistic
  wakes_.fetch_add(1, std::memory_order_relaxed);
  sleeper->parker.notify();
}

policy::counters work_stealing::count() const {
  counters sum;
  for (const worker* w : workers_) {
    // order: relaxed  statistics
    sum.turns += w->turns.load(std::memory_order_relaxed);
    sum.steals += w->steals.load(std::memory_order_relaxed);
    sum.stolen += w->stolen.load(std::memory_order_relaxed);
  }
  // order: relaxed  a statistic
  sum.wakes = wakes_.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace troupe::sched
