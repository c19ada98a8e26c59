#include "sched/stealing/worker.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/invariant.hpp"
#include "base/threads/at_fork.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched {

void worker::forget(runnable& item) noexcept {
  if (item.deferred_slot < 0) return;
  const auto slot = static_cast<unsigned>(item.deferred_slot);
  TROUPE_INVARIANT(slot < deferred_count_ && deferred_[slot] == &item, "W1");
  runnable* last = deferred_[--deferred_count_];
  deferred_[slot] = last;
  last->deferred_slot = item.deferred_slot;
  item.deferred_slot = -1;
}

void worker::add_deferred(runnable& item) noexcept {
  if (deferred_count_ == deferred_max) {
    runnable& longest = *deferred_[hand_++ % deferred_max];
    forget(longest);
    deactivate_or_queue(longest);
  }
  // order: relaxed  inside the lock
  TROUPE_INVARIANT(item.home_worker.load(std::memory_order_relaxed) == this, "W2");
  TROUPE_INVARIANT(deferred_count_ < residents_, "W5");
  deferred_[deferred_count_] = &item;
  item.deferred_slot = static_cast<std::int16_t>(deferred_count_++);
}

// `item` has no slot any longer. Deactivates it, which may free it; or queues it when it has mail.
void worker::deactivate_or_queue(runnable& item) noexcept {
  if (!is_idle(item)) return;
  if (item.type->deactivate(item)) {
    TROUPE_INVARIANT(residents_ != 0, "W5");
    --residents_;
  } else {
    push(item);
  }
}

void worker::deactivate_all() noexcept {
  while (deferred_count_ != 0) {
    runnable& item = *deferred_[deferred_count_ - 1];
    forget(item);
    deactivate_or_queue(item);
  }
  hand_ = 0;
}

worker::wake_hints_taken worker::take_wake_hints() noexcept {
  wake_hints_taken taken;
  std::uint64_t queued = 0;
  const auto look = [&](runnable& item) {
    // order: acquire  written inside the home's lock only; if a searcher has just made this worker
    // its home, and has not queued it yet, `where` is read as of then; pairs with give/release
    worker* home_worker = item.home_worker.load(std::memory_order_acquire);
    if (home_worker != this) {
      if (home_worker == nullptr) return;
      // the runnable changed its worker after the sender had looked
      home_worker->wake_hints.push(item);
      ++taken.passed_on;
    } else if (item.where == run_state::running) {
      // its turn may have looked for mail too early: keep the hint until the turn is over
      wake_hints.push(item);
      ++taken.kept;
    } else if (is_idle(item) && item.type->pending(item)) {
      push(item);
      ++queued;
    }
  };
  if (wake_hints.take(look)) {
    for (unsigned slot = 0; slot < deferred_count_; ++slot) look(*deferred_[slot]);
  }
  if (queued != 0) observe::trace(observe::event::arrived, nullptr, queued);
  return taken;
}

std::size_t worker::for_each_quiet(const std::function<void(runnable&)>& look) {
  std::size_t quiet = 0;
  for (unsigned slot = 0; slot < deferred_count_; ++slot) {
    if (!is_idle(*deferred_[slot])) continue;
    look(*deferred_[slot]);
    ++quiet;
  }
  return residents_ - quiet;
}

// The runnables that have waited longest are given first.
unsigned worker::give(worker& searcher, runnable*& list, share most, unsigned at_most) noexcept {
  const std::uint64_t wake_hints_before = wake_hints.pushed();
  const wake_hints_taken hinted = take_wake_hints();
  if (queue.empty()) {
    // A hint that comes meanwhile is not in this sum.
    // order: relaxed  a hint
    vain_wake_hints_.store(wake_hints_before + hinted.kept, std::memory_order_relaxed);
  }
  unsigned given = 0;
  runnable** end = &list;
  const std::size_t count = queue.count();
  const auto mine = static_cast<unsigned>(
      std::min<std::size_t>(most == share::all ? count : (count + 1) / 2, at_most));
  for (; given < mine; ++given) {
    runnable& item = *queue.pop();
    part_with(item);
    item.where = run_state::elsewhere;
    // order: release  another searcher may look at the item inside this searcher's lock, where this
    // one is not yet; pairs with take_wake_hints/acquire
    item.home_worker.store(&searcher, std::memory_order_release);
    item.next = nullptr;
    *end = &item;
    end = &item.next;
  }
  return given;
}

namespace {

// Never destroyed: threads may end after the program's static objects.
struct free_list {
  std::mutex mutex;
  std::vector<worker*> free;  // has room for all workers that were ever made
  std::size_t workers_made = 0;
  static free_list& get() {
    static free_list& instance = *[] {
      auto* const all = new free_list;
      base::hold_at_fork(all->mutex);
      return all;
    }();
    return instance;
  }
  worker* make() {
    free.reserve(workers_made + 1);
    worker* fresh = new worker;
    ++workers_made;
    return fresh;
  }
};

}  // namespace

void worker::ask_for_watch() noexcept {
  if (!queue.empty()) executor->attend();
}

worker& worker::take_from_free_list(sched::executor& for_pool,
                                    const std::atomic<std::uint32_t>& lonely, std::uint64_t seed) {
  auto deactivation_deferred = std::make_unique_for_overwrite<runnable*[]>(deferred_max);
  free_list& all = free_list::get();
  worker* self = nullptr;
  {
    std::lock_guard lock(all.mutex);
    if (all.free.empty()) {
      self = all.make();
    } else {
      self = all.free.back();
      all.free.pop_back();
    }
  }
  self->executor = &for_pool;
  self->lonely = &lonely;
  self->random = seed | 1u;
  self->deferred_ = std::move(deactivation_deferred);
  self->looked_at_ns = self->rebalanced_at_ns = self->rescued_at_ns = self->polled_at_ns = 0;
  self->seen_at_ns.store(0, std::memory_order_relaxed);  // order: relaxed  a hint
  // order: relaxed  the thread that starts with it sees all of this
  const std::uint64_t turns = self->turns.load(std::memory_order_relaxed);
  self->look_after = self->rebalance_after = self->looked_turns = self->rebalanced_turns = turns;
  self->seen_turns.store(turns, std::memory_order_relaxed);  // order: relaxed  a hint
  return *self;
}

void worker::put_on_free_list(worker& ended) {
  TROUPE_REQUIRE(ended.backlog() == 0 && ended.deferred_count_ == 0 && ended.residents_ == 0, "W3");
  ended.deferred_.reset();
  // order: relaxed  statistics of the pool that has ended
  for (auto* statistic : {&ended.turns, &ended.steals, &ended.stolen})
    statistic->store(0, std::memory_order_relaxed);
  // order: relaxed  a hint
  ended.busy.store(false, std::memory_order_relaxed);
  ended.called = false;
  ended.victim = ended.watched = nullptr;
  ended.expects_mail = false;
  ended.vain_waits = ended.waits_left_out = 0;
  free_list& all = free_list::get();
  std::lock_guard lock(all.mutex);
  all.free.push_back(&ended);
}

}  // namespace troupe::sched
