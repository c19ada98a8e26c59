#include "troupe/task/side_call.hpp"

#include <utility>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "task/running/running.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/when.hpp"

namespace troupe::tasks {

// The end of a wait. The coroutine that waited may be a part of a side call.

namespace {
TROUPE_INLINE const char* resume_after(suspension& over) noexcept {
  async_call& call = *over.waiter->call;
  over.end();
  return call.at->resume(call);
}
}  // namespace

const char* suspension::arrive(suspension& self, sched::message_act act) noexcept {
  if (act == sched::message_act::handle) [[likely]] {
    async_call& call = *self.waiter->call;
    if (call.at->is_aside) [[unlikely]]
      return side_call::run_for_user(self, call, &resume_after);
    return resume_after(self);
  }
  // Apart, so that no registers are saved for it above.
  const auto end_without_turn =
      [](suspension & over, sched::message_act how) __attribute__((noinline)) {
    if (how == sched::message_act::discard) {
      if (side_call::end_discarded(over)) return;
      // order: release  the last touch of a wait that the actor's end then takes; pairs with the
      // acquire below
      over.reclaimable.store(true, std::memory_order_release);
    } else if (how == sched::message_act::reclaim) {
      // order: acquire  the thread that ended the wait is done with it; pairs with the release
      // above
      for (int spin = 0; !over.reclaimable.load(std::memory_order_acquire); ++spin)
        base::std_atomics::wait_a_little(spin);
      over.end();
    }
  };
  end_without_turn(self, act);
  return nullptr;
}

// The waits of users.

void side_wait::add(side_call& call) noexcept {
  call.waiter_ = this;
  call.next_waited_ = first_;
  first_ = &call;
}

void side_wait::suspend_in(coroutine& awaiting) noexcept {
  ended = outcome::arrived;
  seen_in = 0;
  is_final = false;
  excused = true;
  for (const side_call* call = first_; call != nullptr && excused; call = call->next_waited_)
    excused = call->awaited != nullptr && call->awaited->excused;
  begin(awaiting);
}

void side_wait::forget_all() noexcept {
  if (keeps_) return;
  while (side_call* const call = first_) {
    first_ = std::exchange(call->next_waited_, nullptr);
    call->waiter_ = nullptr;
    call->hold();
  }
}

bool side_wait::disarm() noexcept {
  return !limited || static_cast<limited_side_wait*>(this)->disarm();
}

async_call* side_wait::ready() noexcept {
  if (!disarm()) {
    // Its end is on its way, and finds the side call ready. Until then no branch beside it wins.
    is_final = true;
    return nullptr;
  }
  forget_all();
  async_call& call = *waiter->call;
  end();
  return call.busy ? nullptr : &call;
}

const char* side_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "the next value of a stream";
  auto& self = static_cast<side_wait&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::detach) {
    if (!self.disarm()) return nullptr;
    self.forget_all();
    return "detached";
  }
  if (act == sched::message_act::pause) return self.is_final ? "has its value" : nullptr;
  if (act == sched::message_act::handle) {
    async_call& call = self.starts_ != nullptr ? *self.starts_ : *self.waiter->call;
    return call.at->is_aside ? side_call::run_for_user(self, call, &handle) : handle(self);
  }
  if (act == sched::message_act::discard && self.starts_ != nullptr) {
    std::exchange(self.starts_, nullptr)->discard_queued();
    return nullptr;
  }
  if (act == sched::message_act::reclaim) self.forget_all();
  return arrive(self, act);
}

const char* side_wait::handle(suspension& base) noexcept {
  auto& self = static_cast<side_wait&>(base);
  if (side_call* const started = std::exchange(self.starts_, nullptr)) {
    started->start_queued();
    return nullptr;
  }
  self.forget_all();
  return arrive(self, sched::message_act::handle);
}

bool limited_side_wait::suspend_for(side_call& call, coroutine& user,
                                    std::chrono::nanoseconds at_most, const std::stop_token& stop,
                                    bool may_run) {
  takes_ = true;
  if (may_run ? call.advance_and_take(user) : call.advance_later(user))
    return !may_run && call.has_ended() && let_others_run(user);
  if (user.call->cancelled || stop.stop_requested()) {
    ended = outcome::cancelled;
  } else if (at_most.count() <= 0) {
    ended = outcome::timed_out;
  } else {
    add(call);
    suspend_in(user);
    limit(at_most, stop);
    return true;
  }
  call.hold();
  return false;
}

void limited_side_wait::limit(std::chrono::nanoseconds at_most, const std::stop_token& stop) {
  limited = true;
  try {
    if (at_most != std::chrono::nanoseconds::max()) {
      timers& clock = *waiter->call->at->clock;
      arm(clock, *this, due_in(clock, at_most));
      armed_ = true;
    }
    if (stop.stop_possible()) stop_.emplace(stop, on_stop{*this});
  } catch (...) {
    if (!disarm()) return;  // it has ended already
    forget_all();
    forget();
    throw;
  }
}

bool limited_side_wait::disarm() noexcept {
  stop_.reset();  // waits for a callback that is running
  if (std::exchange(armed_, false)) cancel(*waiter->call->at->clock, *this);
  // order: relaxed  whoever could set it has returned, and its lock orders the write
  return !sent_.load(std::memory_order_relaxed);
}

void limited_side_wait::on_time(timer& self) noexcept {
  static_cast<limited_side_wait&>(self).end_early(outcome::timed_out);
}

// Called by a timer or a stop, on any thread. The first of them ends the wait.
void limited_side_wait::end_early(outcome how) noexcept {
  // order: relaxed  only one of them may send; the message orders the rest
  if (!sent_.exchange(true, std::memory_order_relaxed)) over(how);
}

// A side call on its way: idle, pending, idle again; or given up.

bool side_call::advance(coroutine& user) {
  if (is_ready()) return true;
  if (!advance_and_take(user)) return false;
  // order: relaxed  it is the user's
  if (at_.load(std::memory_order_relaxed) == state::idle && !done) {
    at_.store(state::given, std::memory_order_relaxed);  // order: relaxed  as above
    user_nested_ = no_user;
  }
  return true;
}

// The user has not taken the value, or seen the end: that is there for the next one.
void side_call::keep() noexcept {
  // order: relaxed  it is the user's, unless it is pending
  if (!has_something() || at_.load(std::memory_order_relaxed) != state::idle) return;
  at_.store(state::given, std::memory_order_relaxed);  // order: relaxed  as above
  user_nested_ = no_user;
}

bool side_call::prepare(const async_call& outer) noexcept {
  if (seen() != state::idle || outer.nested >= nested_max) return false;
  use(outer);
  refill();
  nested = static_cast<std::uint8_t>(outer.nested + 1);
  user_nested_ = outer.nested;
  user_at_ = outer.at;
  return true;
}

bool side_call::advance_slowly(coroutine& user) {
  async_call& outer = *user.call;
  switch (seen()) {
    case state::given:
      taken();
      return true;
    case state::ended:
      return true;
    case state::idle:
      if (done) return true;
      break;
    default:
      if (actor == outer.actor) return false;
      throw usage_error(
          "troupe: async_generator: another actor or task has begun to wait for its next value. "
          "Let one actor take all values, or move the stream before the first next()");
  }
  // Too deep on the stack: the coroutine runs in the actor's next turn.
  given = nullptr;
  use(outer);
  become_pending();
  own_wait_.starts_ = this;
  own_wait_.waiter = &root_;
  at->go_on_later(own_wait_);
  return false;
}

// It has given nothing so far: it awaits other coroutines of its own, or waits, or has ended.
bool side_call::run_on() noexcept {
  loop();
  busy = true;
  if (has_something()) return true;
  become_pending();
  return false;
}

bool side_call::wait(coroutine& user) noexcept {
  if (user.call->cancelled) {
    // order: relaxed  the user's turn
    if (at_.load(std::memory_order_relaxed) == state::pending) hold();
    own_wait_.waiter = &user;
    own_wait_.ended = outcome::cancelled;
    return false;
  }
  own_wait_.add(*this);
  own_wait_.suspend_in(user);
  return true;
}

void side_call::become_pending() noexcept {
  // order: relaxed  it is the user's
  TROUPE_INVARIANT(at_.load(std::memory_order_relaxed) == state::idle, "A1");
  busy = false;
  user_nested_ = no_user;
  if (context != nullptr) [[unlikely]]
    hold_context(*context);
  // order: relaxed  its wait, or how its user travels, publishes it
  at_.store(state::pending, std::memory_order_relaxed);
}

void side_call::hold() noexcept {
  // order: relaxed  in its turn
  if (holds_ || at_.load(std::memory_order_relaxed) != state::pending) return;
  hold_actor(actor);
  holds_ = true;
}

// It is pending no longer.
void side_call::release() noexcept {
  leave_crowd();
  if (call_context* const held = std::exchange(context, nullptr)) [[unlikely]]
    drop_context(*held);
  if (std::exchange(holds_, false)) drop_actor(actor);
}

// Its user has given it up, and with it the crowd: nothing beside it is touched (B2).
void side_call::leave_crowd() noexcept {
  if (waiter_ == nullptr || !waiter_->keeps_) return;
  std::exchange(waiter_, nullptr)->drop_abandoned();
}

// As release(), and its user has given it up. The actor goes last, since its object may be in use.
void side_call::free() noexcept {
  TROUPE_INVARIANT(!is_listed(), "A4");
  void* const held = std::exchange(holds_, false) ? actor : nullptr;
  release();
  gone_(*this);
  if (held != nullptr) drop_actor(held);
}

void side_call::run_in_context() noexcept {
  const inside_context entered(context);
  loop();
}

// The event that its coroutine awaited has arrived. Returns the call that must be resumed next, if
// any.
async_call* side_call::resume_once() noexcept {
  // The first as for the call itself (actor/turn/async_calls.cpp).
  // order: relaxed  a hint: a side call that is given up meanwhile is found to be so below
  if (is_discarding(actor) || at_.load(std::memory_order_relaxed) == state::left) [[unlikely]]
    cancelled = true;
  nested = 0;
  run_in_context();
  if (!has_something()) return nullptr;
  busy = true;
  side_wait* const by = waiter_;
  TROUPE_INVARIANT(holds_ || (by != nullptr && !by->keeps_), "A2");
  side_wait* const crowd = by != nullptr && by->keeps_ ? by : nullptr;
  if (crowd != nullptr) crowd->let_leave(*this);
  // Once it is no longer pending, another thread may free it: its resources are
  // dropped through these copies.
  call_context* const in_context = std::exchange(context, nullptr);
  void* const own_actor = actor;
  const bool held = std::exchange(holds_, false);
  state pending = state::pending;
  // order: acq_rel  publishes the coroutine's writes to a user on another thread; relaxed: given up
  if (at_.compare_exchange_strong(pending, by != nullptr && by->takes_ ? state::idle : state::given,
                                  std::memory_order_acq_rel, std::memory_order_relaxed)) {
    if (in_context != nullptr) [[unlikely]]
      drop_context(*in_context);
    async_call* const next = by == nullptr      ? nullptr
                             : crowd == nullptr ? by->ready()
                                                : crowd->crowd_ready();
    if (crowd != nullptr) crowd->drop_crowd();
    if (held) drop_actor(own_actor);
    return next;
  }
  context = in_context;
  holds_ = held;
  if (crowd != nullptr) crowd->drop_crowd();
  if (at->left->remove(*this)) free();
  return nullptr;
}

const char* side_call::resume_side(async_call& call) noexcept {
  async_call& outer = outermost(call);
  async_call* const before = resume_running(outer, outer.call.act);
  async_call* next = &call;
  while (next != nullptr) {
    side_call* const self = side_call::of(*next);
    if (self == nullptr) break;
    next = self->resume_once();
  }
  static_cast<void>(exchange_running(before));
  return next == nullptr ? nullptr : next->at->resume(*next);
}

void side_call::start_queued() noexcept {
  // order: relaxed  a hint; the list decides
  if (at_.load(std::memory_order_relaxed) == state::left && at->left->remove(*this)) return free();
  push(root_);
  resume_side(*this);
}

void side_call::discard_queued() noexcept {
  if (at->left->remove(*this)) free();
}

coroutine* side_call::awaits(const async_call& call) noexcept {
  if (call.at->resume != &resume_side) return group::awaits(call);
  const side_wait* const by = static_cast<const side_call&>(call).waiter_;
  return by == nullptr ? nullptr : by->waiter;
}

async_call& side_call::outermost(async_call& inner) noexcept {
  async_call* call = &inner;
  while (const coroutine* const above = awaits(*call)) call = above->call;
  return *call;
}

// Its end.

void side_call::drop() noexcept {
  if (seen() != state::pending) return gone_(*this);
  if (is_current_actor(actor)) return cancel_here();
  if (!at->left->add(*this)) gone_(*this);
}

void side_call::cancel_here() noexcept {
  leave_crowd();
  waiter_ = nullptr;
  next_waited_ = nullptr;
  cancelled = true;
  if (own_wait_.starts_ == nullptr) {
    cancel();
    async_call* const before = exchange_running(this);
    run_in_context();
    static_cast<void>(exchange_running(before));
    if (has_something()) {
      // order: relaxed  no other thread can see it
      at_.store(state::idle, std::memory_order_relaxed);
      return free();
    }
  }
  hold();
  static_cast<void>(at->left->add(*this));  // only this turn could make it idle
}

// The actor has ended, and no turn of it handles the end of this wait.
bool side_call::end_discarded(suspension& over) noexcept {
  async_call* call = over.waiter == nullptr ? nullptr : over.waiter->call;
  while (call != nullptr && call->at != nullptr && call->at->resume != &resume_side) {
    const coroutine* const above = group::awaits(*call);
    call = above == nullptr ? nullptr : above->call;
  }
  side_call* const self = call == nullptr || call->at == nullptr ? nullptr : of(*call);
  if (self == nullptr || !self->at->left->remove(*self)) return false;
  // order: relaxed  this thread itself takes the wait below
  over.reclaimable.store(true, std::memory_order_relaxed);
  static_cast<void>(self->finish_now());
  self->free();
  return true;
}

bool left_side_calls::add(side_call& call) noexcept {
  std::lock_guard lock(mutex_);
  auto pending = side_call::state::pending;
  // order: acquire  the caller frees the rest of its turn; relaxed: the lock publishes the rest
  if (!call.at_.compare_exchange_strong(pending, side_call::state::left, std::memory_order_acquire))
    return false;
  call.set_listed(true);
  all_.push_front(call);
  return true;
}

bool left_side_calls::remove(side_call& call) noexcept {
  std::lock_guard lock(mutex_);
  if (!call.is_listed()) return false;
  call.set_listed(false);
  all_.remove(call);
  return true;
}

side_call* left_side_calls::take() noexcept {
  std::lock_guard lock(mutex_);
  async_call* const call = all_.pop_front();
  if (call != nullptr) call->set_listed(false);
  return static_cast<side_call*>(call);
}

void left_side_calls::end_all() noexcept {
  while (side_call* const call = take()) {
    static_cast<void>(call->finish_now());
    call->free();
  }
}

}  // namespace troupe::tasks
