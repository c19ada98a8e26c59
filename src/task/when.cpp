#include "troupe/task/when.hpp"

#include <memory>
#include <new>

#include "task/running_flow.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::tasks {

branch::branch(group& within, coroutine& task) : flow(within), of(within), root(task) {}

bool group::start(coroutine& awaiting, std::span<branch> branches) noexcept {
  flow& in = *awaiting.in;
  at_ = *in.at;
  at_.resume = &resume_branch;
  branches_ = branches;
  left_ = branches.size();
  who = &awaiting;
  for (branch& one : branches) {
    one.actor = in.actor;
    one.at = &at_;
    // What comes behind a winner starts as cancelled: it may still return at once.
    one.cancelled = in.cancelled || (first_only_ && winner_ != SIZE_MAX);
    one.root.in = &one;
    one.root.completed = [](coroutine& self) noexcept { self.in->done = true; };
    one.push(one.root);
    run(one);
  }
  if (left_ == 0) return false;
  begin(awaiting);
  suspended_ = true;
  return true;
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

// The last thing that touches the group.
void group::end_if_done() noexcept {
  if (left_ != 0 || !suspended_) return;
  suspended_ = false;
  flow& in = *who->in;
  end();
  if (!in.busy) in.at->resume(in);
}

void group::cancel_all() noexcept {
  for (branch& one : branches_) {
    if (one.done || one.root.in == nullptr) continue;  // not started yet, perhaps
    one.cancel();
    if (!one.busy) run(one);
  }
}

void group::resume_branch(flow& of) noexcept {
  auto& one = static_cast<branch&>(of);
  group& all = one.of;
  if (is_discarding(one.actor)) [[unlikely]] one.cancelled = true;  // as the call that awaits it would be (actor/flows.cpp)
  // What asks in it asks for the call that awaits them all.
  flow* call = all.who->in;
  while (call->at->resume == &resume_branch) call = static_cast<branch*>(call)->of.who->in;
  flow* const before = exchange_running(call);
  all.run(one);
  static_cast<void>(exchange_running(before));
  all.end_if_done();
}

const char* group::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "tasks that run side by side";
  auto& self = static_cast<group&>(*static_cast<wait*>(base));
  if (act == sched::message_act::detach) {
    self.cancel_all();
    self.end_if_done();
  } else if (act == sched::message_act::strand) {
    for (branch& one : self.branches_) {
      if (!one.done && one.finish_now()) self.count_done(one);
    }
    self.suspended_ = false;
    // One that awaits what is none of ours never ends, and so neither does who waits for them all.
    self.left_ == 0 ? self.end() : self.forget();
  }
  return nullptr;  // it ends when its branches have
}

group_awaiter::group_awaiter(bool first_only, std::span<coroutine* const> roots) : group_(first_only) {
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
