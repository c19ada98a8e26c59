#include "troupe/task/when.hpp"

#include <memory>
#include <new>
#include <utility>

#include "task/running_call.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::tasks {

branch::branch(group& within, coroutine& task) : async_call(within), of(within), root(task) {}

// The group of which this async call is a branch; null when it is a call of its own.
group* group::around(const async_call& of) noexcept {
  return of.at->resume == &resume_branch ? &static_cast<const branch&>(of).of : nullptr;
}

// Groups nest, and so would these calls: a group in a branch of a group calls `act` inside the
// outer group's `act`. At depth_max the inner group is put into a list instead, and the outermost
// call acts on it.
template <class Act>
void group::nest(group_nest* group::*at, Act act) noexcept {
  group* const outer = around(*who->in);
  group_nest own;
  group_nest& within = outer == nullptr || outer->*at == nullptr ? own : *(outer->*at);
  if (within.depth == group_nest::depth_max) {
    if (std::exchange(is_later_, true)) return;
    next_later_ = nullptr;
    *std::exchange(within.later_end, &next_later_) = this;
    return;
  }
  group_nest* const before = std::exchange(this->*at, &within);
  ++within.depth;
  act(*this);
  while (group* const later = own.later) {
    own.later = later->next_later_;
    if (own.later == nullptr) own.later_end = &own.later;
    later->is_later_ = false;
    later->*at = &own;
    act(*later);
    later->*at = nullptr;
    later->go_on_if_done();
  }
  --within.depth;
  this->*at = before;
}

bool group::start(coroutine& awaiting, std::span<branch> branches) noexcept {
  at_ = *awaiting.in->at;
  at_.resume = &resume_branch;
  branches_ = branches;
  left_ = branches.size();
  who = &awaiting;
  nest(&group::starts_, [](group& self) noexcept { self.start_all(); });
  if (left_ == 0) return false;
  begin(awaiting);
  suspended_ = true;
  return true;
}

void group::start_all() noexcept {
  const async_call& in = *who->in;
  for (branch& one : branches_) {
    one.actor = in.actor;
    one.at = &at_;
    // A branch behind one that has won starts as cancelled: it may still return at once.
    one.cancelled = in.cancelled || (first_only_ && winner_ != SIZE_MAX);
    one.root.in = &one;
    one.push(one.root);
    run(one);
  }
}

void group::run(branch& one) noexcept {
  if (one.loop() && one.done && count_done(one) && first_only_) cancel_all();
}

bool group::count_done(branch& one) noexcept {
  --left_;
  if (winner_ != SIZE_MAX) return false;
  winner_ = static_cast<std::size_t>(&one - branches_.data());
  return true;
}

// The last touch of the group. Returns the call that must be resumed, unless that call is running
// now.
async_call* group::end_if_done() noexcept {
  if (left_ != 0 || !suspended_ || starts_ != nullptr || cancels_ != nullptr) return nullptr;
  suspended_ = false;
  async_call& in = *who->in;
  end();
  return in.busy ? nullptr : &in;
}

void group::go_on_if_done() noexcept {
  if (async_call* const next = end_if_done()) next->at->resume(*next);
}

void group::cancel_all() noexcept {
  nest(&group::cancels_, [](group& self) noexcept {
    for (branch& one : self.branches_) {
      if (one.done || one.root.in == nullptr) continue;  // it may not have started yet
      one.cancel();
      if (!one.busy) self.run(one);
    }
  });
}

// Also resumes the calls that await the branch's group, as long as those are branches: in a loop,
// however deep they nest.
const char* group::resume_branch(async_call& of) noexcept {
  // Asks that the branch makes are asks of the call that awaits all these groups.
  async_call* call = &of;
  while (const group* const all = around(*call)) call = all->who->in;
  async_call* const before = exchange_running(call);
  async_call* next = &of;
  while (next != nullptr && next != call) {
    auto& one = static_cast<branch&>(*next);
    group& all = one.of;
    // as for the call itself (actor/turn/async_calls.cpp)
    if (is_discarding(one.actor)) [[unlikely]]
      one.cancelled = true;
    all.run(one);
    next = all.end_if_done();
  }
  static_cast<void>(exchange_running(before));
  return next == nullptr ? nullptr : next->at->resume(*next);
}

const char* group::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "tasks that run side by side";
  auto& self = static_cast<group&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::detach) {
    self.cancel_all();
    self.go_on_if_done();
  } else if (act == sched::message_act::reclaim) {
    for (branch& one : self.branches_) {
      if (!one.done && one.finish_now()) self.count_done(one);
    }
    self.suspended_ = false;
    // A branch that awaits something foreign never ends; then the coroutine that waits for the
    // group never resumes either.
    self.left_ == 0 ? self.end() : self.forget();
  }
  return nullptr;  // the group ends when its branches have
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
