#include "troupe/task/groups/scope_group.hpp"

#include <new>
#include <utility>

#include "task/groups/nested_groups.hpp"
#include "task/groups/waiting_scopes.hpp"
#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::tasks {
namespace {

bool is_cancelled(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::exception_ptr child_cancelled_error() noexcept try {
  return std::make_exception_ptr(
      cancelled("troupe: scope: the child was cancelled before it could start"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

}  // namespace

scope_child::scope_child(scope_group& within, coroutine& task, const kind& of_kind) noexcept
    : branch(within, task), operations(of_kind) {}

constinit thread_local waiting_scopes::list waiting_scopes::of_thread{};

void waiting_scopes::add(scope_group& scope) noexcept {
  scope.lists_.join(group::list::scopes);
  scope.next_listed_ = std::exchange(of_thread.first, &scope);
}

async_call* waiting_scopes::start_waiting() noexcept {
  while (scope_group* const scope = of_thread.first) {
    of_thread.first = scope->next_listed_;
    scope->lists_.leave(group::list::scopes);
    scope->start_children();
    if (async_call* const next = scope->end_if_done()) return next;
  }
  return nullptr;
}

bool scope_wait::suspend(coroutine& awaiting, scope_wait*& last_in) noexcept {
  if (awaiting.call->cancelled) {
    ended = outcome::cancelled;
    return false;
  }
  scope_wait** end = &last_in;
  while (*end != nullptr) end = &(*end)->next_;
  *end = this;
  link_ = end;
  begin(awaiting);
  return true;
}

void scope_wait::wait_for_end_of(const scope_child& child, coroutine& awaiting) noexcept {
  child_ = &child;
  for_lock = true;
  search_for_holder(*awaiting.call, limited);
}

void scope_wait::check() const {
  if (ended == outcome::deadlock) throw_refused(*this);
  if (ended == outcome::cancelled) throw cancelled("troupe: scope: the wait was cancelled");
}

scope_wait& scope_wait::take(scope_wait*& from) noexcept {
  scope_wait& wait = *from;
  from = wait.next_;
  if (from != nullptr) from->link_ = &from;
  wait.link_ = nullptr;
  return wait;
}

const char* scope_wait::act_on(sched::message* base, void* result, sched::message_act act) {
  if (act == sched::message_act::describe) return "a child of its scope";
  auto& self = static_cast<scope_wait&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::holder) {
    if (self.child_ == nullptr || self.link_ == nullptr) return nullptr;
    *static_cast<lock_holder*>(result) = {&self.child_->root, self.child_->owner.root().call.act,
                                          nullptr, true};
    return "runs";
  }
  if (act != sched::message_act::detach) return arrive(self, act);
  if (self.link_ == nullptr) return nullptr;  // it has ended, and is on its way
  *self.link_ = self.next_;
  if (self.next_ != nullptr) self.next_->link_ = self.link_;
  self.link_ = nullptr;
  return "detached";
}

const group::kind scope_group::scope_kind{
    "the children of its scope",
    false,
    [](group& self) noexcept { as_this(self).start_all(); },
    [](group& self, branch& child) noexcept {
      as_this(self).ended(static_cast<scope_child&>(child));
    },
    [](group& self) noexcept { as_this(self).cancel(true); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};

// All children have ended, or the coroutines that await them are destroyed unfinished.
scope_group::~scope_group() {
  cancelled_ = cancelled_part::all;
  const auto drop = [](scope_child& child) noexcept {
    child.done = true;
    child.waits = nullptr;  // those coroutines are also destroyed
    child.operations.drop(child, child_cancelled_error());
    child.release();
  };
  while (scope_child* const child = waiting_.take()) drop(*child);
  for_each_started([&](scope_child& child) noexcept {
    remove(child);
    drop(child);
  });
  while (scope_child* const child = ended_.take()) child->release();
}

scope_body::~scope_body() { static_cast<scope_group&>(owner).forget_body(); }

void scope_group::queue::add(scope_child& child) noexcept {
  child.next = nullptr;
  (first == nullptr ? first : last->next) = &child;
  last = &child;
}

void scope_group::queue::add_first(scope_child& child) noexcept {
  child.next = std::exchange(first, &child);
  if (child.next == nullptr) last = &child;
}

scope_child* scope_group::queue::take() noexcept {
  scope_child* const child = first;
  if (child != nullptr) first = child->next;
  return child;
}

bool scope_group::start(coroutine& awaiting, scope_body* body) noexcept {
  waiter = &awaiting;
  body_ = body;
  if (body != nullptr) {
    ++left_;
    add(*body);
  }
  root_ = &root_of(awaiting);
  return left_ != 0 && group::start(awaiting);
}

void scope_group::start_all() noexcept {
  if (waiter->call->cancelled) cancel(true);
  starting_ = true;
  if (body_ != nullptr) {
    around_all_ = context_ref::make_within(waiter->call->context, *waiter->call->at->clock);
    body_->context = around_all_.get();
    start_branch(*body_, cancelled_ == cancelled_part::all);
  }
  starting_ = false;
  start_children();
}

void scope_group::start_children() noexcept {
  if (std::exchange(starting_, true)) return;
  while (running_ < limit_) {
    scope_child* const child = waiting_.take();
    if (child == nullptr) break;
    if (around_children_.get() == nullptr) {
      call_context* const outer = around_all_.get();
      around_children_ = context_ref::make_within(outer == nullptr ? waiter->call->context : outer,
                                                  *waiter->call->at->clock);
    }
    ++running_;
    add(*child);
    child->context = around_children_.get();
    start_branch(*child, false);
  }
  starting_ = false;
}

// No other thread starts the children that wait: this thread does, before its turn ends.
void scope_group::list_if_needed() noexcept {
  if (waiting_.first != nullptr && running_ < limit_ && !starting_ && root_ != nullptr &&
      !lists_.has(list::scopes))
    waiting_scopes::add(*this);
}

// Whether a child may be added here: in the calls of the scope. A side call may run inside the call
// that uses it, or beside all calls.
bool scope_group::is_running() const noexcept {
  const async_call* const running = running_call();
  return running == root_ ||
         (running != nullptr && side_call::of(*root_) != nullptr && running->actor == root_->actor);
}

void scope_group::add_child(scope_child& child) {
  if (cancelled_ != cancelled_part::none) {
    child.done = true;
    was_cut_ = true;
    child.operations.drop(child, child_cancelled_error());
    return child.release();
  }
  if (root_ != nullptr && !is_running()) {
    child.operations.drop(child, nullptr);
    child.release();
    throw usage_error(
        "troupe: task_scope::spawn: only the body of the scope and its children may add children");
  }
  child.number = ++spawned_;
  ++left_;
  waiting_.add(child);
  list_if_needed();
}

void scope_group::set_limit(std::size_t most) {
  if (most == 0) throw usage_error("troupe: task_scope::limit: the limit must be at least 1");
  limit_ = most;
  list_if_needed();
}

std::size_t scope_group::unfinished() const noexcept {
  if (root_ == nullptr) return left_;
  return left_ - (body_ != nullptr && !body_->done ? 1 : 0);
}

// A child that ends inside of `act` may be freed by that.
template <class Act>
void scope_group::for_each_started(Act act) noexcept {
  cursor position{branches_.first(), cursors_};
  cursors_ = &position;
  while (position.next != nullptr) {
    auto& child = static_cast<scope_child&>(*position.next);
    position.next = child.link.next;
    if (!child.done && child.root.call != nullptr) act(child);
  }
  cursors_ = position.outer;
}

// The body is destroyed before its scope; if it has not ended, it still is in the list.
void scope_group::forget_body() noexcept {
  if (body_ != nullptr && !body_->done) remove(*body_);
  body_ = nullptr;
}

void scope_group::forget_child(scope_child& child) noexcept {
  for (cursor* at = cursors_; at != nullptr; at = at->outer) {
    if (at->next == &child) at->next = child.link.next;
  }
  remove(child);
}

void scope_group::ended(scope_child& child) noexcept {
  --left_;
  if (&child != body_) --running_;
  // A value that no handle can take is destroyed with the frame.
  using keeps = scope_child::keeps;
  const bool is_kept = child.refs > 1 || collects_ || &child == body_;
  const bool is_shared = tells_all_ || !first_failure_.there();
  std::exception_ptr failure = child.operations.settle(child,
                                                       !is_kept    ? keeps::nothing
                                                       : is_shared ? keeps::shared
                                                                   : keeps::its_own,
                                                       first_failure_.look());
  const bool has_value = failure == nullptr;
  forget_child(child);
  if (failure != nullptr) fail(std::move(failure), child.cancelled, is_kept);
  while (child.waits != nullptr) scope_wait::take(child.waits).over(outcome::arrived);
  if (&child == body_) return;
  tell_next(child, has_value);
  list_if_needed();
}

// The first failure ends the others. A later failure belongs to its handle, if it has a handle.
void scope_group::fail(std::exception_ptr&& failure, bool was_cancelled, bool is_kept) noexcept {
  if (was_cancelled && is_cancelled(failure)) {
    was_cut_ = true;
    return;
  }
  const bool is_first = !first_failure_.there();
  if (is_first) {
    first_failure_.set(failure);
  } else if (!is_kept && !tells_all_ && failure != first_failure_.look()) {
    report_dropped(failure);
  }
  try {
    failures_.push_back(std::move(failure));
  } catch (const std::bad_alloc&) {
    // The first one is thrown in any case.
  }
  if (is_first) cancel(true);
}

// The wait for the next child takes this one, or finds it later.
void scope_group::tell_next(scope_child& child, bool has_value) noexcept {
  if (collects_ && !has_value) {
    child.release();
  } else if (next_waits_ != nullptr) {
    scope_wait& wait = scope_wait::take(next_waits_);
    wait.has_ended = true;
    if (collects_) wait.got = &child;
    if (!collects_) child.release();
    wait.over(outcome::arrived);
  } else if (collects_) {
    ended_.add(child);
  } else {
    ++untold_;
    child.release();
  }
  if (unfinished() != 0) return;
  while (next_waits_ != nullptr) scope_wait::take(next_waits_).over(outcome::arrived);
}

bool scope_group::try_next(scope_wait& wait) noexcept {
  if (collects_) {
    wait.got = ended_.take();
    wait.has_ended = wait.got != nullptr;
  } else if (untold_ != 0) {
    --untold_;
    wait.has_ended = true;
  }
  return wait.has_ended || unfinished() == 0;
}

bool scope_group::wait_next(scope_wait& wait, coroutine& awaiting) noexcept {
  if (!try_next(wait)) return wait.suspend(awaiting, next_waits_);
  wait.waiter = &awaiting;  // a child that it has got goes back if the call is cancelled meanwhile
  return suspend_ready(awaiting);
}

void scope_group::put_back_if_cancelled(scope_wait& wait) noexcept {
  if (wait.waiter == nullptr || !wait.waiter->call->cancelled || wait.ended != outcome::arrived)
    return;
  wait.ended = outcome::cancelled;
  if (!std::exchange(wait.has_ended, false)) return;
  if (next_waits_ != nullptr) {
    scope_wait& other = scope_wait::take(next_waits_);
    other.has_ended = true;
    other.got = std::exchange(wait.got, nullptr);
    other.over(outcome::arrived);
  } else if (wait.got != nullptr) {
    ended_.add_first(*std::exchange(wait.got, nullptr));
  } else {
    ++untold_;
  }
}

bool scope_group::wait_for(scope_wait& wait, scope_child& child, coroutine& awaiting) {
  if (child.done) return suspend_ready(awaiting);
  if (awaiting.call->actor != waiter->call->actor)
    throw usage_error(
        "troupe: task_scope::child: only tasks of the scope's actor may await it before the scope "
        "has ended");
  wait.wait_for_end_of(child, awaiting);
  return wait.suspend(awaiting, child.waits);
}

void scope_group::cancel(bool body_too) noexcept {
  if (body_too || cancelled_ == cancelled_part::none)
    cancelled_ = body_too ? cancelled_part::all : cancelled_part::children;
  drop_waiting();
  if (root_ == nullptr) return;
  end_contexts(body_too);
  nest(&scope_group::cancels_, [](group& base) noexcept {
    scope_group& self = as_this(base);
    self.for_each_started([&](scope_child& child) noexcept {
      if (&child != self.body_ || self.cancelled_ == cancelled_part::all) self.cancel_branch(child);
    });
  });
}

// The handlers that the children have asked, in other actors, are cancelled with them.
void scope_group::end_contexts(bool body_too) noexcept {
  call_context* around = body_too ? around_all_.get() : nullptr;
  if (around == nullptr) around = around_children_.get();
  if (around != nullptr) stop_context(*around);
}

void scope_group::drop_waiting() noexcept {
  while (scope_child* const child = waiting_.take()) {
    --left_;
    was_cut_ = true;
    child->done = true;
    child->operations.drop(*child, child_cancelled_error());
    while (child->waits != nullptr) scope_wait::take(child->waits).over(outcome::arrived);
    tell_next(*child, false);
  }
}

void scope_group::reclaim_all() noexcept {
  cancelled_ = cancelled_part::all;
  drop_waiting();
  for_each_started([this](scope_child& child) noexcept {
    if (child.finish_now()) ended(child);
  });
}

void scope_group::check() {
  if (first_failure_.there()) std::rethrow_exception(first_failure_.take());
  if (was_cut_ && waiter->call->cancelled)
    throw cancelled("troupe: scope: the task that awaits it was cancelled");
}

}  // namespace troupe::tasks
