#include "troupe/task/when.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/invariant.hpp"
#include "task/groups/nested_groups.hpp"
#include "task/groups/waiting_scopes.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/error.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/result.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::tasks {

branch::branch(group& within, coroutine& task) : async_call(within), owner(within), root(task) {}

// The group of which this async call is a branch; null when it is a call of its own.
group* group::around(const async_call& call) noexcept {
  return call.at->resume == &resume_branch ? &static_cast<const branch&>(call).owner : nullptr;
}

async_call& group::root_of(const coroutine& awaiting) noexcept {
  const group* const outer = around(*awaiting.call);
  return outer == nullptr ? *awaiting.call : *outer->root_;
}

bool group::start(coroutine& awaiting) noexcept {
  at_ = *awaiting.call->at;
  at_.resume = &resume_branch;
  at_.is_part = true;
  root_ = &root_of(awaiting);
  const group* const outer = around(*awaiting.call);
  if (outer != nullptr) race_ = outer->race_;
  if (race_ == nullptr && first_only()) race_ = &own_race_;
  waiter = &awaiting;
  nest(&group::starts_, [](group& self) noexcept { self.kind_.start(self); });
  waiting_scopes::start_if_outermost();
  if (left_ == 0) return false;
  // `waiter` was set before the branches began: other threads that end their waits may read it by
  // now.
  enlist(awaiting);
  suspended_ = true;
  return true;
}

void group::add(branch& child) noexcept { branches_.push_back(child); }

void group::remove(branch& child) noexcept { branches_.remove(child); }

void group::prepare_branch(branch& prepared, bool as_cancelled) noexcept {
  prepared.actor = waiter->call->actor;
  prepared.at = &at_;
  prepared.refill_at_start();
  prepared.cancelled = prepared.cancelled || as_cancelled;
  if (prepared.context == nullptr) prepared.context = waiter->call->context;
  if (around(*waiter->call) != nullptr) {
    const char* const outer = static_cast<const branch&>(*waiter->call).span;
    if (outer != nullptr) prepared.span = outer;
  }
  prepared.root.call = &prepared;
  prepared.push(prepared.root);
}

void group::start_branch(branch& child, bool as_cancelled) noexcept {
  prepare_branch(child, as_cancelled);
  run(child);
}

void group::postpone_branch(branch& branch) noexcept {
  prepare_branch(branch, false);
  branch.postpone();
  has_held_ = true;
}

// The kind may free the branch when it has ended.
void group::run(branch& branch) noexcept {
  bool has_run = false;
  branch.begin_or_continue();
  const std::uint64_t began = branch.span == nullptr ? 0 : observe::begin_counted_span();
  {
    const inside_context entered(branch.context);
    has_run = branch.loop();
  }
  if (began != 0) [[unlikely]]
    observe::end_counted_span(branch.span, began);
  if (!has_run || !branch.done) return;
  kind_.ended(*this, branch);
}

void group::cancel_branch(branch& branch) noexcept {
  branch.cancel();
  if (!branch.busy) run(branch);
}

namespace {
constexpr unsigned looks_into_max = 64;  // groups within groups, by one walk
// How long branches are held for a group whose loser awaits something foreign.
constexpr std::chrono::milliseconds foreign_hold_max{100};
}  // namespace

// Calls look(wait) for the wait of the branch, and for the branches within it, if that cannot be
// undone, and for each group that has moved something; until it returns false. It looks into so
// many groups within groups: each of n nested groups asks for this walk, which would take n² steps
// otherwise.
template <class Look>
bool group::for_each_final(branch& child, Look look) noexcept {
  unsigned depth = 0;
  for (async_call* at = &child;;) {
    suspension* const wait = at->done ? nullptr : at->awaited;
    async_call* within = nullptr;
    if (wait != nullptr && wait->is_final) {
      if (wait->act == &act_on) {
        auto& all = *static_cast<group*>(wait);
        if (all.moved_ != moved::nothing && all.holds() && !look(all)) return false;
        if (depth < looks_into_max) within = all.branches_.first();
      } else if (!look(*wait)) {
        return false;
      }
    }
    if (within != nullptr) {
      at = within;
      ++depth;
      continue;
    }
    for (; at != &child && branches::next(*at) == nullptr; --depth)
      at = static_cast<branch*>(at)->owner.waiter->call;
    if (at == &child) return true;
    at = branches::next(*at);
  }
}

bool group::pause(branch& child) noexcept {
  const suspension* happened = nullptr;
  const bool is_paused = for_each_final(child, [&](suspension& wait) noexcept {
    if (wait.pauses == 0 && wait.act(&wait, nullptr, sched::message_act::pause) != nullptr) {
      happened = &wait;
      return false;
    }
    ++wait.pauses;
    return true;
  });
  if (!is_paused) resume(child, happened);
  return is_paused;
}

// As a message it notifies the group that its time is over. It owns itself while it is on its way.
struct group::hold_limit final : suspension, timer {
  // Null without memory, or without a thread that keeps the time.
  static hold_limit* begin(group& all) noexcept;
  static void on_time(timer& base) noexcept {
    auto& self = static_cast<hold_limit&>(base);
    self.at_.go_on(self.actor_, self);
  }
  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return "the end of a hold";
    auto* const limit = static_cast<hold_limit*>(static_cast<suspension*>(base));
    // order: acq_rel  the last owner sees the other one's changes; pairs with end_hold_limit
    if (act != sched::message_act::handle &&
        !limit->is_left.exchange(true, std::memory_order_acq_rel))
      return nullptr;  // the group frees it
    const std::unique_ptr<hold_limit> self(limit);
    if (act == sched::message_act::handle && self->holder != nullptr) self->holder->release();
    return nullptr;
  }
  group* holder;  // null when that has ended
  // By the group, or by the end of the runtime, which discards it. The second one frees it.
  std::atomic<bool> is_left{false};

 private:
  explicit hold_limit(group& all) noexcept
      : suspension(&act_on),
        timer(&on_time, timer_source::runtime),
        holder(&all),
        at_(all.at_),
        actor_(all.waiter->call->actor) {}
  const call_host at_;
  void* const actor_;
};

group::hold_limit* group::hold_limit::begin(group& all) noexcept {
  try {
    std::unique_ptr<hold_limit> armed(new hold_limit(all));
    arm(*all.at_.clock, *armed, due_in(*all.at_.clock, foreign_hold_max));
    return armed.release();
  } catch (...) {
    return nullptr;
  }
}

// A loser that awaits something foreign may need a branch that is held. Therefore that hold has a
// limit.
bool group::holds() noexcept {
  if (moved_ != moved::released && hold_limit_ == nullptr && waits_for_foreign()) [[unlikely]] {
    hold_limit_ = hold_limit::begin(*this);
    if (hold_limit_ == nullptr) end_hold();
  }
  return moved_ != moved::released;
}

void group::end_hold() noexcept {
  TROUPE_INVARIANT(moved_ == moved::holds, "H1");
  moved_ = moved::released;
}

// Whether a loser awaits something foreign, itself or in a group within it.
bool group::waits_for_foreign() const noexcept {
  unsigned left = looks_into_max;
  return waits_for_foreign(*this, left);
}

// Looks into so many groups. Those that are left out may wait for anything.
bool group::waits_for_foreign(const group& all, unsigned& left) noexcept {
  for (const async_call& each : all.branches_) {
    if (each.done) continue;
    if (each.waits_for_foreign()) return true;
    const suspension* const wait = each.awaited;
    if (wait == nullptr || wait->act != &act_on) continue;
    if (left == 0 || waits_for_foreign(static_cast<const group&>(*wait), --left)) return true;
  }
  return false;
}

bool group::has_moved_in(branch& child) noexcept {
  return !for_each_final(child,
                         [](const suspension& wait) noexcept { return wait.act != &act_on; });
}

// A group that begins is not seen yet by a walk from the outside.
void group::keep_race(race& this_race) noexcept {
  auto& kept = static_cast<own_race&>(this_race);
  if (kept.must_settle && !kept.is_kept) kept.is_kept = kept.enter();
}

void group::settle_race(race& this_race) noexcept {
  auto& settled = static_cast<own_race&>(this_race);
  if (!settled.must_settle) [[likely]]
    return;
  bool has_moved = false;
  for (async_call& call : settled.owner.branches_)
    has_moved = has_moved || has_moved_in(static_cast<branch&>(call));
  settled.must_settle = has_moved;
  // If it cannot enter, a send of the same branch has happened, and leaves the race at its run.
  if (has_moved && !settled.is_kept) settled.is_kept = settled.enter();
  if (!has_moved && std::exchange(settled.is_kept, false)) settled.leave();
}

// A wait that began after the pause was not paused.
void group::resume(branch& child, const suspension* end) noexcept {
  for_each_final(child, [&](suspension& wait) noexcept {
    if (&wait == end) return false;
    if (wait.pauses != 0 && --wait.pauses == 0)
      wait.act(&wait, nullptr, sched::message_act::resume);
    return true;
  });
}

bool group::pause_all_but(const branch& child) noexcept {
  for (async_call& each : branches_) {
    auto& other = static_cast<branch&>(each);
    if (&other == &child || pause(other)) continue;
    resume_all_but(child, &other);
    return false;
  }
  return true;
}

void group::resume_all_but(const branch& child, const branch* end) noexcept {
  for (async_call& each : branches_) {
    if (&each == end) return;
    if (&each != &child) resume(static_cast<branch&>(each), nullptr);
  }
}

bool group::pause_beside_or_hold(branch& candidate) noexcept {
  if (candidate.owner.race_ == nullptr) [[likely]]
    return false;
  group* const refuses = pause_beside(candidate);
  if (refuses == nullptr) return false;
  candidate.pause();
  refuses->has_held_ = true;
  return true;
}

group* group::pause_beside(branch& candidate) noexcept {
  for (branch* inner = &candidate;;) {
    group& all = inner->owner;
    // A branch that has moved something ends first, and nothing else can happen beside it.
    if (all.is_open_to(*inner) && !all.pause_all_but(*inner) && !has_moved_in(*inner)) {
      resume_beside(candidate.owner, candidate, &all);
      return &all;
    }
    if (around(*all.waiter->call) == nullptr) return nullptr;
    inner = static_cast<branch*>(all.waiter->call);
  }
}

void group::resume_beside(group& all, const branch& child, const group* end) noexcept {
  if (all.race_ == nullptr) [[likely]]
    return;
  if (end == nullptr) settle_race(*all.race_);
  const branch* inner = &child;
  for (group* at = &all; at != nullptr && at != end;) {
    if (at->is_open_to(*inner)) at->resume_all_but(*inner, nullptr);
    group* const outer = around(*at->waiter->call);
    if (outer != nullptr) inner = static_cast<const branch*>(at->waiter->call);
    at = outer;
  }
  look_again(*all.race_);
}

void group::deliver_kept() noexcept {
  if (own_race_.kept == nullptr) [[likely]]
    return;
  // The runtime's end discards the messages that no turn will handle.
  // order: relaxed  the thread that destroys the actors has seen the end
  const bool is_in_turn =
      is_current_actor(waiter->call->actor) &&
      !runtime_state::of(waiter->call->actor).closing.load(std::memory_order_relaxed);
  while (suspension* const over = own_race_.kept) {
    // order: relaxed  only turns of the actor use the list
    own_race_.kept = reinterpret_cast<suspension*>(over->next.load(std::memory_order_relaxed));
    if (is_in_turn) {
      at_.go_on_later(*over);
    } else {
      over->act(over, nullptr, sched::message_act::discard);
    }
  }
}

void group::look_again_inside() noexcept {
  for (async_call& call : branches_) {
    for_each_final(static_cast<branch&>(call), [](suspension& wait) noexcept {
      if (wait.pauses == 0 && wait.act(&wait, nullptr, sched::message_act::pause) == nullptr)
        wait.act(&wait, nullptr, sched::message_act::resume);
      return true;
    });
  }
}

race* race_around(const async_call& call) noexcept {
  const group* const all = group::around(call);
  return all == nullptr ? nullptr : all->race_;
}

void look_again(race& race) noexcept {
  while (race.must_look()) static_cast<group::own_race&>(race).owner.look_again_inside();
}

// The competitors of a branch that it finds are paused.
branch* group::find_held() noexcept {
  for (async_call& call : branches_) {
    auto& candidate = static_cast<branch&>(call);
    if (candidate.done) continue;
    if (candidate.is_held() && !pause_beside_or_hold(candidate)) return &candidate;
    if (candidate.awaited == nullptr || candidate.awaited->act != &act_on) continue;
    if (branch* const within = static_cast<group*>(candidate.awaited)->find_held()) return within;
  }
  return nullptr;
}

branch* group::next_held() noexcept {
  if (race_ == nullptr) [[likely]]
    return nullptr;
  for (group* all = this; all != nullptr; all = around(*all->waiter->call)) {
    if (!all->has_held_) [[likely]]
      continue;
    if (branch* const found = all->find_held()) return found;
  }
  return nullptr;
}

async_call* group::end_if_done() noexcept {
  if (left_ != 0 || !suspended_ || starts_ != nullptr || cancels_ != nullptr || !lists_.is_empty())
    return nullptr;
  suspended_ = false;
  if (owns_race()) deliver_kept();
  if (hold_limit_ != nullptr || moved_ == moved::released) [[unlikely]]
    end_hold_limit();
  async_call& call = *waiter->call;
  end();
  return call.busy ? nullptr : &call;
}

// The wait of a winner until those that have lost have ended. A cancellation ends it at once: the
// call of the winner then puts back its value.
struct group::winner_wait : suspension {
  winner_wait(group& all, branch& won) noexcept : suspension(&act_on), within(all), winner(won) {
    within.winner_waits_ = this;
    begin(won.root);
  }
  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return "the end of tasks that have lost";
    if (act != sched::message_act::detach) return nullptr;
    static_cast<winner_wait*>(static_cast<suspension*>(base))->within.winner_waits_ = nullptr;
    return "detached";
  }
  group& within;
  branch& winner;
};

suspension* group::win_before_taking(coroutine& arrived) noexcept {
  async_call& call = *arrived.call;
  group* const all = around(call);
  if (all == nullptr || !all->first_only() || !fixed_group::is_fixed(*all)) return nullptr;
  auto& won = static_cast<branch&>(call);
  if (&won.root != &arrived || !static_cast<fixed_group*>(all)->win(won)) return nullptr;
  // Without memory it takes its value at once.
  return new (std::nothrow) winner_wait(*all, won);
}

void group::drop_winner_wait(suspension* ended) noexcept {
  delete static_cast<winner_wait*>(ended);
}

void group::tell_if_lost(const async_call& branch, const char* name) noexcept {
  group* const all = around(branch);
  if (all == nullptr || !all->is_decided_ || !fixed_group::is_fixed(*all)) return;
  const auto& those = fixed_group::as_this(*all);
  if (&those.branches_[those.winner_] == &branch) return;
  report_dropped(failure_of([name] {
    throw usage_error(std::string("troupe: when_any: ") + name +
                      " lost, and has a result all the same, which is dropped. Await it in a task "
                      "of its own that keeps the result");
  }));
}

bool group::has_others(const branch& winner) const noexcept {
  for (const async_call& each : branches_) {
    const auto& other = static_cast<const branch&>(each);
    if (&other != &winner && !other.done && other.root.call != nullptr) return true;
  }
  return false;
}

branch* group::winner_to_go_on() noexcept {
  if (winner_waits_ == nullptr || has_others(winner_waits_->winner)) [[likely]]
    return nullptr;
  winner_wait& over = *std::exchange(winner_waits_, nullptr);
  over.end();
  return &over.winner;
}

void group::go_on_if_done() noexcept {
  if (branch* const winner = winner_to_go_on()) run(*winner);
  if (async_call* const next = end_if_done()) next->at->resume(*next);
}

void group::end_hold_limit() noexcept {
  if (hold_limit* const limit = std::exchange(hold_limit_, nullptr)) {
    if (cancel(*at_.clock, *limit)) {
      delete limit;
    } else {
      limit->holder = nullptr;
      // order: acq_rel  the last owner sees the other one's changes; pairs with act_on
      if (limit->is_left.exchange(true, std::memory_order_acq_rel)) delete limit;
    }
  }
  if (moved_ != moved::released || !waiter->call->cancelled) return;
  report_dropped(failure_of([] {
    throw usage_error(
        "troupe: when_any: a task lost although a when_any inside of it had its value: a loser "
        "there "
        "awaits an operation that is not the library's, and did not end within 100 ms. The value "
        "is "
        "lost unless that task keeps it. Give the awaitable an await_cancel()");
  }));
}

// The branches that were held for it run.
void group::release() noexcept {
  hold_limit_ = nullptr;
  end_hold();
  settle_race(*race_);
  look_again(*race_);
  static_cast<own_race*>(race_)->owner.deliver_kept();
  if (branch* const held = next_held()) resume_in_race(*held, true);
}

const char* group::resume_branch(async_call& call) noexcept {
  return resume_in_race(static_cast<branch&>(call), false);
}

// Also resumes the calls that await the branch's group, as long as those are branches: in a loop,
// however deep they nest.
const char* group::resume_in_race(branch& ready, bool is_paused) noexcept {
  // Asks that the branch makes are asks of the call that awaits all these groups.
  async_call* const call = ready.owner.root_;
  async_call& outer = side_call::outermost(*call);
  async_call* const before = resume_running(outer, outer.call.act);
  async_call* next = &ready;
  {
    waiting_scopes scopes;
    if (!is_paused && pause_beside_or_hold(ready)) [[unlikely]]
      next = scopes.start_next_to_run(*call);
    while (next != nullptr && next != call) {
      auto& current = static_cast<branch&>(*next);
      group& all = current.owner;
      // as for the call itself (actor/turn/async_calls.cpp)
      if (is_discarding(current.actor)) [[unlikely]]
        current.cancelled = true;
      all.run(current);
      next = all.end_if_done();
      if (next == nullptr) next = all.winner_to_go_on();
      if (next != nullptr) continue;  // its competitors are also paused
      resume_beside(all, current, nullptr);
      if (all.race_ != nullptr) static_cast<own_race*>(all.race_)->owner.deliver_kept();
      next = all.next_held();
      if (next == nullptr) next = scopes.start_next_to_run(*call);
    }
  }
  running_here().running_call = before;
  return next == nullptr ? nullptr : next->at->resume(*next);
}

const char* group::act_on(sched::message* base, void*, sched::message_act act) {
  auto* const self = static_cast<group*>(static_cast<suspension*>(base));
  if (act == sched::message_act::describe) return self == nullptr ? "tasks" : self->kind_.name;
  if (act == sched::message_act::pause) return "has moved";  // others are not asked
  if (act == sched::message_act::detach) {
    self->kind_.cancel(*self);
    self->go_on_if_done();
  } else if (act == sched::message_act::reclaim) {
    self->deliver_kept();
    self->kind_.reclaim(*self);
    self->suspended_ = false;
    // A branch that awaits something foreign never ends; then the coroutine that waits for the
    // group never resumes either.
    self->end_hold_limit();
    self->left_ == 0 ? self->end() : self->forget();
  }
  return nullptr;  // the group ends when its branches have
}

const group::kind fixed_group::all_kind{
    "tasks that run side by side",
    false,
    [](group& self) noexcept { as_this(self).start_all(); },
    [](group& self, branch& child) noexcept { as_this(self).count_done(child); },
    [](group& self) noexcept { as_this(self).cancel_all(); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};
const group::kind fixed_group::first_kind{
    "tasks that run side by side",
    true,
    [](group& self) noexcept { as_this(self).start_all(); },
    [](group& self, branch& child) noexcept {
      const bool is_first = as_this(self).count_done(child);
      if (is_first) as_this(self).decide_around();
      as_this(self).mark_moved(child);
      as_this(self).drop_if_unneeded(child);
      if (is_first) as_this(self).cancel_losers();
    },
    [](group& self) noexcept { as_this(self).cancel_all(); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};

bool fixed_group::start(coroutine& awaiting, std::span<branch> branches) noexcept {
  branches_ = branches;
  left_ = branches.size();
  for (branch& child : branches) add(child);
  return group::start(awaiting);
}

void fixed_group::start_all() noexcept {
  const bool as_cancelled = waiter->call->cancelled, pauses = first_only() && !as_cancelled;
  bool has_moved = false;
  for (branch& child : branches_) {
    // A branch behind one that has won does not start: it could take something that it then drops.
    // Nor does it before one runs whose send has happened.
    if (is_decided_) {
      skip(child);
    } else if (has_moved) {
      postpone_branch(child);
    } else {
      start_branch(child, as_cancelled);
      has_moved = pauses && !is_decided_ && !pause(child);
    }
  }
  if (!pauses || is_decided_) return;
  owns_race() ? settle_race(*race_) : keep_race(*race_);
  for (branch& child : branches_) resume(child, nullptr);
  look_again(*race_);
}

void fixed_group::skip(branch& branch) noexcept {
  branch.done = true;
  --left_;
}

bool fixed_group::count_done(branch& child) noexcept {
  --left_;
  return decide(child);
}

void fixed_group::drop_if_unneeded(branch& child) noexcept {
  const auto place = static_cast<std::size_t>(&child - branches_.data());
  if (tasks_.drop != nullptr) tasks_.drop(tasks_.all, place, place != winner_);
}

bool fixed_group::decide(branch& winner) noexcept {
  if (winner_ != SIZE_MAX) return false;
  is_decided_ = first_only();
  winner_ = static_cast<std::size_t>(&winner - branches_.data());
  return true;
}

// A when_any that is itself a branch of a when_any, or is all that such a branch awaits, has its
// value when it is decided, although it waits for the end of its losers: it has also won there.
void fixed_group::decide_around() noexcept {
  group* const outer = around(*waiter->call);
  if (outer == nullptr) return;
  auto& own = static_cast<branch&>(*waiter->call);
  if (&own.root != waiter || !is_fixed(*outer)) return;
  fixed_group& all = as_this(*outer);
  if (!all.first_only()) {
    if (all.branches_.size() == 1) all.decide_around();
  } else if (all.decide(own)) {
    all.decide_around();
    all.cancel_losers();
  }
}

// The group in which this one is the winner, or all that it awaits; null if there is none.
fixed_group* fixed_group::decided_around() const noexcept {
  group* const outer = around(*waiter->call);
  if (outer == nullptr) return nullptr;
  const auto& own = static_cast<const branch&>(*waiter->call);
  if (&own.root != waiter || !is_fixed(*outer)) return nullptr;
  fixed_group& all = as_this(*outer);
  const bool has_won = all.first_only()
                           ? all.winner_ != SIZE_MAX && &all.branches_[all.winner_] == &own
                           : all.branches_.size() == 1;
  return has_won ? &all : nullptr;
}

// The value of a winner that has ended is lost if a branch around it loses before the coroutine
// that awaits this group has run.
void fixed_group::mark_moved(const branch& winner) noexcept {
  if (around(*waiter->call) == nullptr || &winner != &branches_[winner_]) return;
  for (fixed_group* all = this; all != nullptr; all = all->decided_around()) all->note_moved();
  must_settle_race();
}

// Decides for a branch that has not ended. Returns true if others have to end before it takes its
// value.
bool fixed_group::win(branch& winner) noexcept {
  if (winner.cancelled || !decide(winner)) return false;
  decide_around();
  if (!has_others(winner)) return false;
  cancel_losers();
  return has_others(winner);
}

void fixed_group::cancel_all() noexcept {
  nest(&fixed_group::cancels_, [](group& self) noexcept {
    auto& all = as_this(self);
    all.settle_before_cancel();
    for (branch& branch : all.branches_) {
      // it may not have started yet
      if (!branch.done && branch.root.call != nullptr) all.cancel_unless_postponed(branch);
    }
  });
}

// A branch whose send has happened wins, although others end before.
void fixed_group::settle_before_cancel() noexcept {
  if (!first_only() || is_decided_) return;
  for (branch& child : branches_) {
    if (!pause(child)) decide(child);
  }
}

void fixed_group::cancel_losers() noexcept {
  nest(&fixed_group::cancels_, [](group& self) noexcept {
    auto& all = as_this(self);
    for (branch& branch : all.branches_) {
      const bool has_won = &branch == &all.branches_[all.winner_];
      if (!has_won && !branch.done && branch.root.call != nullptr)
        all.cancel_unless_postponed(branch);
    }
  });
}

void fixed_group::cancel_unless_postponed(branch& branch) noexcept {
  branch.has_begun() || !is_decided_ ? cancel_branch(branch) : skip(branch);
}

void fixed_group::reclaim_all() noexcept {
  for (branch& branch : branches_) {
    if (!branch.done && branch.finish_now()) count_done(branch);
  }
}

group_awaiter::group_awaiter(bool first_only, std::span<coroutine* const> roots,
                             droppable_tasks tasks)
    : group_(first_only, tasks) {
  if (roots.empty()) return;
  auto* place = static_cast<branch*>(memory::allocate(roots.size() * sizeof(branch)));
  for (std::size_t i = 0; i < roots.size(); ++i) ::new (place + i) branch(group_, *roots[i]);
  branches_ = {place, roots.size()};
}

group_awaiter::~group_awaiter() {
  if (branches_.empty()) return;
  std::destroy(branches_.begin(), branches_.end());
  memory::deallocate(branches_.data(), branches_.size() * sizeof(branch));
}

}  // namespace troupe::tasks
