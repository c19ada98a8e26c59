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

bool is_cancelled(const std::exception_ptr& what) noexcept {
  try {
    std::rethrow_exception(what);
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
    : branch(within, task), its(of_kind) {}

constinit thread_local waiting_scopes::list waiting_scopes::of_thread{};

void waiting_scopes::add(scope_group& one) noexcept {
  one.is_listed_ = true;
  one.next_listed_ = std::exchange(of_thread.first, &one);
}

async_call* waiting_scopes::start_waiting() noexcept {
  while (scope_group* const one = of_thread.first) {
    of_thread.first = one->next_listed_;
    one->is_listed_ = false;
    one->start_children();
    if (async_call* const next = one->end_if_done()) return next;
  }
  return nullptr;
}

bool scope_wait::suspend(coroutine& awaiting, scope_wait*& last_in) noexcept {
  if (awaiting.in->cancelled) {
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

void scope_wait::wait_for_end_of(const scope_child& one, coroutine& awaiting) noexcept {
  child_ = &one;
  for_lock = true;
  // order: relaxed (all)  as before a wait for a lock: the thread that parks the actor asks again
  if (!locks_are_awaited.load(std::memory_order_relaxed)) [[unlikely]]
    locks_are_awaited.store(true, std::memory_order_relaxed);
  const call_host& at = *awaiting.in->at;
  if (!at.searched_soon->load(std::memory_order_relaxed)) [[unlikely]]
    at.search_soon(awaiting.in->actor);
}

void scope_wait::check() const {
  if (ended == outcome::deadlock) throw_refused(*this);
  if (ended == outcome::cancelled) throw cancelled("troupe: scope: the wait was cancelled");
}

scope_wait& scope_wait::take(scope_wait*& from) noexcept {
  scope_wait& one = *from;
  from = one.next_;
  if (from != nullptr) from->link_ = &from;
  one.link_ = nullptr;
  return one;
}

const char* scope_wait::act_on(sched::message* base, void* of, sched::message_act act) {
  if (act == sched::message_act::describe) return "a child of its scope";
  auto& self = static_cast<scope_wait&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::holder) {
    if (self.child_ == nullptr || self.link_ == nullptr) return nullptr;
    *static_cast<lock_holder*>(of) = {&self.child_->root, self.child_->of.root().call.act, nullptr,
                                      true};
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
    [](group& self, branch& one) noexcept { as_this(self).ended(static_cast<scope_child&>(one)); },
    [](group& self) noexcept { as_this(self).cancel(true); },
    [](group& self) noexcept { as_this(self).reclaim_all(); }};

// All children have ended, or the coroutines that await them are destroyed unfinished.
scope_group::~scope_group() {
  cancelled_ = true;
  const auto drop = [](scope_child& one) noexcept {
    one.done = true;
    one.waits = nullptr;  // those coroutines are destroyed, too
    one.its.drop(one, child_cancelled_error());
    one.release();
  };
  while (scope_child* const one = waiting_.take()) drop(*one);
  for_each_started([&](scope_child& one) noexcept {
    remove(one);
    drop(one);
  });
  while (scope_child* const one = ended_.take()) one->release();
}

scope_body::~scope_body() { static_cast<scope_group&>(of).forget_body(); }

void scope_group::queue::add(scope_child& one) noexcept {
  one.next = nullptr;
  (first == nullptr ? first : last->next) = &one;
  last = &one;
}

void scope_group::queue::add_first(scope_child& one) noexcept {
  one.next = std::exchange(first, &one);
  if (one.next == nullptr) last = &one;
}

scope_child* scope_group::queue::take() noexcept {
  scope_child* const one = first;
  if (one != nullptr) first = one->next;
  return one;
}

bool scope_group::start(coroutine& awaiting, scope_body* body) noexcept {
  who = &awaiting;
  body_ = body;
  if (body != nullptr) {
    ++left_;
    add(*body);
  }
  root_ = &root_of(awaiting);
  return left_ != 0 && group::start(awaiting);
}

void scope_group::start_all() noexcept {
  if (who->in->cancelled) cancel(true);
  starting_ = true;
  if (body_ != nullptr) {
    around_all_ = context_ref::make_within(who->in->context, *who->in->at->clock);
    body_->context = around_all_.get();
    start_branch(*body_, body_cancelled_);
  }
  starting_ = false;
  start_children();
}

void scope_group::start_children() noexcept {
  if (std::exchange(starting_, true)) return;
  while (running_ < limit_) {
    scope_child* const one = waiting_.take();
    if (one == nullptr) break;
    if (around_children_.get() == nullptr) {
      call_context* const outer = around_all_.get();
      around_children_ = context_ref::make_within(outer == nullptr ? who->in->context : outer,
                                                  *who->in->at->clock);
    }
    ++running_;
    add(*one);
    one->context = around_children_.get();
    start_branch(*one, false);
  }
  starting_ = false;
}

// Nobody else starts the children that wait: the thread does, before its turn ends.
void scope_group::list_if_needed() noexcept {
  if (waiting_.first != nullptr && running_ < limit_ && !starting_ && root_ != nullptr &&
      !is_listed_)
    waiting_scopes::add(*this);
}

// Whether a child may be added here: in the calls of the scope. A side call may run inside the call
// that uses it, or beside all calls.
bool scope_group::is_running() const noexcept {
  const async_call* const running = running_call();
  return running == root_ ||
         (running != nullptr && side_call::of(*root_) != nullptr && running->actor == root_->actor);
}

void scope_group::add_child(scope_child& one) {
  if (cancelled_) {
    one.done = true;
    was_cut_ = true;
    one.its.drop(one, child_cancelled_error());
    return one.release();
  }
  if (root_ != nullptr && !is_running()) {
    one.its.drop(one, nullptr);
    one.release();
    throw usage_error(
        "troupe: task_scope::spawn: only the body of the scope and its children may add children");
  }
  one.number = ++spawned_;
  ++left_;
  waiting_.add(one);
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
  cursor here{branches_.first(), cursors_};
  cursors_ = &here;
  while (here.next != nullptr) {
    auto& one = static_cast<scope_child&>(*here.next);
    here.next = one.link.next;
    if (!one.done && one.root.in != nullptr) act(one);
  }
  cursors_ = here.outer;
}

// The body is destroyed before its scope; if it has not ended, it still is in the list.
void scope_group::forget_body() noexcept {
  if (body_ != nullptr && !body_->done) remove(*body_);
  body_ = nullptr;
}

void scope_group::forget_child(scope_child& one) noexcept {
  for (cursor* at = cursors_; at != nullptr; at = at->outer) {
    if (at->next == &one) at->next = one.link.next;
  }
  remove(one);
}

void scope_group::ended(scope_child& one) noexcept {
  --left_;
  if (&one != body_) --running_;
  // A value that no handle can take is destroyed with the frame.
  using keeps = scope_child::keeps;
  const bool is_kept = one.refs > 1 || collects_ || &one == body_;
  const bool is_shared = tells_all_ || !first_failure_.there();
  std::exception_ptr failure = one.its.settle(one,
                                              !is_kept    ? keeps::nothing
                                              : is_shared ? keeps::shared
                                                          : keeps::its_own,
                                              first_failure_.look());
  const bool has_value = failure == nullptr;
  forget_child(one);
  if (failure != nullptr) fail(std::move(failure), one.cancelled, is_kept);
  while (one.waits != nullptr) scope_wait::take(one.waits).over(outcome::arrived);
  if (&one == body_) return;
  tell_next(one, has_value);
  list_if_needed();
}

// The first failure ends the others. A later one is its handle's, if there is one.
void scope_group::fail(std::exception_ptr&& what, bool was_cancelled, bool is_kept) noexcept {
  if (was_cancelled && is_cancelled(what)) {
    was_cut_ = true;
    return;
  }
  const bool is_first = !first_failure_.there();
  if (is_first) {
    first_failure_.set(what);
  } else if (!is_kept && !tells_all_ && what != first_failure_.look()) {
    report_dropped(what);
  }
  try {
    failures_.push_back(std::move(what));
  } catch (const std::bad_alloc&) {
    // The first one is thrown in any case.
  }
  if (is_first) cancel(true);
}

// Whoever waits for the next child is told of this one, or finds it later.
void scope_group::tell_next(scope_child& one, bool has_value) noexcept {
  if (collects_ && !has_value) {
    one.release();
  } else if (next_waits_ != nullptr) {
    scope_wait& wait = scope_wait::take(next_waits_);
    wait.has_ended = true;
    if (collects_) wait.got = &one;
    if (!collects_) one.release();
    wait.over(outcome::arrived);
  } else if (collects_) {
    ended_.add(one);
  } else {
    ++untold_;
    one.release();
  }
  if (unfinished() != 0) return;
  while (next_waits_ != nullptr) scope_wait::take(next_waits_).over(outcome::arrived);
}

bool scope_group::try_next(scope_wait& one) noexcept {
  if (collects_) {
    one.got = ended_.take();
    one.has_ended = one.got != nullptr;
  } else if (untold_ != 0) {
    --untold_;
    one.has_ended = true;
  }
  return one.has_ended || unfinished() == 0;
}

bool scope_group::wait_next(scope_wait& one, coroutine& awaiting) noexcept {
  if (!try_next(one)) return one.suspend(awaiting, next_waits_);
  one.who = &awaiting;  // a child that it has got goes back if the call is cancelled meanwhile
  return suspend_ready(awaiting);
}

void scope_group::put_back_if_cancelled(scope_wait& one) noexcept {
  if (one.who == nullptr || !one.who->in->cancelled || one.ended != outcome::arrived) return;
  one.ended = outcome::cancelled;
  if (!std::exchange(one.has_ended, false)) return;
  if (next_waits_ != nullptr) {
    scope_wait& other = scope_wait::take(next_waits_);
    other.has_ended = true;
    other.got = std::exchange(one.got, nullptr);
    other.over(outcome::arrived);
  } else if (one.got != nullptr) {
    ended_.add_first(*std::exchange(one.got, nullptr));
  } else {
    ++untold_;
  }
}

bool scope_group::wait_for(scope_wait& one, scope_child& child, coroutine& awaiting) {
  if (child.done) return suspend_ready(awaiting);
  if (awaiting.in->actor != who->in->actor)
    throw usage_error(
        "troupe: task_scope::child: only tasks of the scope's actor may await it before the scope "
        "has ended");
  one.wait_for_end_of(child, awaiting);
  return one.suspend(awaiting, child.waits);
}

void scope_group::cancel(bool body_too) noexcept {
  cancelled_ = true;
  if (body_too) body_cancelled_ = true;
  drop_waiting();
  if (root_ == nullptr) return;
  end_contexts(body_too);
  nest(&scope_group::cancels_, [](group& base) noexcept {
    scope_group& self = as_this(base);
    self.for_each_started([&](scope_child& one) noexcept {
      if (&one != self.body_ || self.body_cancelled_) self.cancel_branch(one);
    });
  });
}

// The handlers that the children have asked, in other actors, are cancelled with them.
void scope_group::end_contexts(bool body_too) noexcept {
  call_context* one = body_too ? around_all_.get() : nullptr;
  if (one == nullptr) one = around_children_.get();
  if (one != nullptr) stop_context(*one);
}

void scope_group::drop_waiting() noexcept {
  while (scope_child* const one = waiting_.take()) {
    --left_;
    was_cut_ = true;
    one->done = true;
    one->its.drop(*one, child_cancelled_error());
    while (one->waits != nullptr) scope_wait::take(one->waits).over(outcome::arrived);
    tell_next(*one, false);
  }
}

void scope_group::reclaim_all() noexcept {
  cancelled_ = body_cancelled_ = true;
  drop_waiting();
  for_each_started([this](scope_child& one) noexcept {
    if (one.finish_now()) ended(one);
  });
}

void scope_group::check() {
  if (first_failure_.there()) std::rethrow_exception(first_failure_.take());
  if (was_cut_ && who->in->cancelled)
    throw cancelled("troupe: scope: the task that awaits it was cancelled");
}

}  // namespace troupe::tasks
