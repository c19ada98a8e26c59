#include "troupe/task/when.hpp"

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "task/groups/nested_groups.hpp"
#include "task/groups/waiting_scopes.hpp"
#include "task/running/running.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::tasks {

branch::branch(group& within, coroutine& task) : async_call(within), of(within), root(task) {}

// The group of which this async call is a branch; null when it is a call of its own.
group* group::around(const async_call& of) noexcept {
  return of.at->resume == &resume_branch ? &static_cast<const branch&>(of).of : nullptr;
}

async_call& group::root_of(const coroutine& awaiting) noexcept {
  const group* const outer = around(*awaiting.in);
  return outer == nullptr ? *awaiting.in : *outer->root_;
}

bool group::start(coroutine& awaiting) noexcept {
  at_ = *awaiting.in->at;
  at_.resume = &resume_branch;
  root_ = &root_of(awaiting);
  const group* const outer = around(*awaiting.in);
  in_race_ = first_only() || (outer != nullptr && outer->in_race_);
  who = &awaiting;
  nest(&group::starts_, [](group& self) noexcept { self.kind_.start(self); });
  waiting_scopes::start_if_outermost();
  if (left_ == 0) return false;
  // `who` was set before the branches began: other threads that end their waits may read it by now.
  enlist(awaiting);
  suspended_ = true;
  return true;
}

void group::add(branch& one) noexcept { branches_.push_back(one); }

void group::remove(branch& one) noexcept { branches_.remove(one); }

void group::start_branch(branch& one, bool as_cancelled) noexcept {
  one.actor = who->in->actor;
  one.at = &at_;
  one.cancelled = one.cancelled || as_cancelled;
  if (one.context == nullptr) one.context = who->in->context;
  if (around(*who->in) != nullptr) {
    const char* const outer = static_cast<const branch&>(*who->in).span;
    if (outer != nullptr) one.span = outer;
  }
  one.root.in = &one;
  one.push(one.root);
  run(one);
}

// The kind may free the branch when it has ended.
void group::run(branch& one) noexcept {
  bool has_run = false;
  one.held = false;
  const std::uint64_t began = one.span == nullptr ? 0 : observe::begin_counted_span();
  {
    const inside_context here(one.context);
    has_run = one.loop();
  }
  if (began != 0) [[unlikely]]
    observe::end_counted_span(one.span, began);
  if (has_run && one.done) kind_.ended(*this, one);
}

void group::cancel_branch(branch& one) noexcept {
  one.cancel();
  if (!one.busy) run(one);
}

// The innermost group around the branch in which it competes with a send that has happened.
group* group::with_send_beside(branch& of) noexcept {
  const branch* inner = &of;
  for (group* all = &of.of;; all = &inner->of) {
    if (all->first_only() && !all->is_decided_) {
      for (const async_call& other : all->branches_) {
        suspension* const wait = other.done ? nullptr : other.awaited;
        if (&other != inner && wait != nullptr && wait->is_final &&
            wait->act(wait, nullptr, sched::message_act::happened) != nullptr)
          return all;
      }
    }
    if (around(*all->who->in) == nullptr) return nullptr;
    inner = static_cast<const branch*>(all->who->in);
  }
}

bool group::hold(branch& one) noexcept {
  if (!one.of.in_race_ || one.cancelled) [[likely]]
    return false;
  group* const all = with_send_beside(one);
  if (all == nullptr) [[likely]]
    return false;
  one.held = true;
  all->has_held_ = true;
  return true;
}

branch* group::find_held() noexcept {
  for (async_call& one : branches_) {
    auto& of = static_cast<branch&>(one);
    if (of.done) continue;
    if (of.held && with_send_beside(of) == nullptr) return &of;
    if (of.awaited == nullptr || of.awaited->act != &act_on) continue;
    if (branch* const within = static_cast<group*>(of.awaited)->find_held()) return within;
  }
  return nullptr;
}

branch* group::next_held() noexcept {
  if (!in_race_) [[likely]]
    return nullptr;
  for (group* all = this; all != nullptr; all = around(*all->who->in)) {
    if (!all->has_held_) [[likely]]
      continue;
    if (branch* const found = all->find_held()) return found;
  }
  return nullptr;
}

async_call* group::end_if_done() noexcept {
  if (left_ != 0 || !suspended_ || starts_ != nullptr || cancels_ != nullptr || is_later_ ||
      is_listed_)
    return nullptr;
  suspended_ = false;
  async_call& in = *who->in;
  end();
  return in.busy ? nullptr : &in;
}

void group::go_on_if_done() noexcept {
  if (async_call* const next = end_if_done()) next->at->resume(*next);
}

// Also resumes the calls that await the branch's group, as long as those are branches: in a loop,
// however deep they nest.
const char* group::resume_branch(async_call& of) noexcept {
  // Asks that the branch makes are asks of the call that awaits all these groups.
  async_call* const call = static_cast<branch&>(of).of.root_;
  async_call* const before = resume_running(side_call::outermost(*call));
  async_call* next = &of;
  {
    waiting_scopes scopes;
    while (next != nullptr && next != call) {
      auto& one = static_cast<branch&>(*next);
      group& all = one.of;
      // as for the call itself (actor/turn/async_calls.cpp)
      if (is_discarding(one.actor)) [[unlikely]]
        one.cancelled = true;
      const bool has_arrived = &one == &of;  // the others continue because a group has ended
      if (!has_arrived || !hold(one)) [[likely]] {
        all.run(one);
        next = all.end_if_done();
        if (next == nullptr) next = all.next_held();
      } else {
        next = nullptr;
      }
      if (next == nullptr) next = scopes.start_next();
    }
  }
  running_here().running_call = before;
  return next == nullptr ? nullptr : next->at->resume(*next);
}

const char* group::act_on(sched::message* base, void*, sched::message_act act) {
  auto* const self = static_cast<group*>(static_cast<suspension*>(base));
  if (act == sched::message_act::describe) return self == nullptr ? "tasks" : self->kind_.name;
  if (act == sched::message_act::detach) {
    self->kind_.cancel(*self);
    self->go_on_if_done();
  } else if (act == sched::message_act::happened) {
    for (const async_call& one : self->branches_) {
      suspension* const wait = one.done ? nullptr : one.awaited;
      if (wait != nullptr && wait->is_final && wait->act(wait, nullptr, act) != nullptr)
        return "happened";
    }
  } else if (act == sched::message_act::reclaim) {
    self->kind_.reclaim(*self);
    self->suspended_ = false;
    // A branch that awaits something foreign never ends; then the coroutine that waits for the
    // group never resumes either.
    self->left_ == 0 ? self->end() : self->forget();
  }
  return nullptr;  // the group ends when its branches have
}

const group::kind fixed_group::all_kind{
    "tasks that run side by side",
    false,
    [](group& self) noexcept { as_this(self).start_all(); },
    [](group& self, branch& one) noexcept { as_this(self).count_done(one); },
    [](group& self) noexcept { as_this(self).cancel_all(); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};
const group::kind fixed_group::first_kind{
    "tasks that run side by side",
    true,
    [](group& self) noexcept { as_this(self).start_all(); },
    [](group& self, branch& one) noexcept {
      if (!as_this(self).count_done(one)) return;
      as_this(self).decide_around();
      as_this(self).cancel_losers();
    },
    [](group& self) noexcept { as_this(self).cancel_all(); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};

bool fixed_group::start(coroutine& awaiting, std::span<branch> branches) noexcept {
  branches_ = branches;
  left_ = branches.size();
  for (branch& one : branches) add(one);
  return group::start(awaiting);
}

void fixed_group::start_all() noexcept {
  const async_call& in = *who->in;
  // A branch behind one that has won does not start: it could take something that it then drops.
  for (branch& one : branches_) is_decided_ ? skip(one) : start_branch(one, in.cancelled);
}

void fixed_group::skip(branch& one) noexcept {
  one.done = true;
  --left_;
}

bool fixed_group::count_done(branch& one) noexcept {
  --left_;
  return decide(one);
}

bool fixed_group::decide(branch& winner) noexcept {
  if (winner_ != SIZE_MAX) return false;
  is_decided_ = first_only();
  winner_ = static_cast<std::size_t>(&winner - branches_.data());
  return true;
}

// A when_any that is itself a branch of a when_any, or is all that such a branch awaits, has its
// value when it is decided, although it waits for the end of its losers: so it has won there, too.
void fixed_group::decide_around() noexcept {
  group* const outer = around(*who->in);
  if (outer == nullptr) return;
  auto& one = static_cast<branch&>(*who->in);
  if (&one.root != who || !is_fixed(*outer)) return;
  fixed_group& all = as_this(*outer);
  if (!all.first_only()) {
    if (all.branches_.size() == 1) all.decide_around();
  } else if (all.decide(one)) {
    all.decide_around();
    all.cancel_losers();
  }
}

void fixed_group::cancel_all() noexcept {
  nest(&fixed_group::cancels_, [](group& self) noexcept {
    auto& all = as_this(self);
    for (branch& one : all.branches_) {
      // it may not have started yet
      if (!one.done && one.root.in != nullptr) all.cancel_branch(one);
    }
  });
}

void fixed_group::cancel_losers() noexcept {
  nest(&fixed_group::cancels_, [](group& self) noexcept {
    auto& all = as_this(self);
    for (branch& one : all.branches_) {
      const bool has_won = &one == &all.branches_[all.winner_];
      if (!has_won && !one.done && one.root.in != nullptr) all.cancel_branch(one);
    }
  });
}

void fixed_group::reclaim_all() noexcept {
  for (branch& one : branches_) {
    if (!one.done && one.finish_now()) count_done(one);
  }
}

group_awaiter::group_awaiter(bool first_only, std::span<coroutine* const> roots)
    : group_(first_only) {
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
