#include "troupe/task/future.hpp"

#include "base/invariant.hpp"
#include "task/one_shot.hpp"
#include "task/running/actor_functions.hpp"
#include "task/running/runtime_state.hpp"

namespace troupe::tasks {

std::exception_ptr broken_error() noexcept try {
  return std::make_exception_ptr(
      broken_promise("troupe: the promise was dropped before it was resolved"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

namespace {

void change(ask_link& ask, ask_link::wait to) noexcept {
  // order: relaxed  the asker's turns change it, and a thread that has ended the wait
  TROUPE_INVARIANT(!ask.is_refused() || to == ask_link::wait::refused, "W1");
  // order: relaxed  a hint for the turn that would handle the ask, for an ask that waits for room,
  // and for the search for deadlocks
  ask.stage.store(to, std::memory_order_relaxed);
}

void check_for_cycle(ask_link& asked, const coroutine& awaiting) try {
  runtime_state::of(awaiting.call->actor).actors->throw_if_deadlock(asked);
} catch (...) {
  change(asked, ask_link::wait::refused);
  throw;
}

}  // namespace

namespace {

using shot = one_shot<observer, std::atomic<std::uintptr_t>>;

// Before the coroutine waits for the answer of an ask.
TROUPE_INLINE void note_ask(ask_link& asked, const coroutine& awaiting, bool limited) {
  async_call& call = *awaiting.call;
  // order: relaxed  for messages; a thread that follows the chain of askers may read it at any
  // time
  std::atomic_ref(asked.at).store(awaiting.awaits_at, std::memory_order_relaxed);
  // Only when the call that asked waits itself, and for this alone. If another task awaits the
  // answer, or the wait is one of several side by side, only the search has enough information.
  const bool by_asker = asked.by_call() && call.answers == asked.parent &&
                        (asked.asker == nullptr || asked.asker == call.actor) && !call.at->is_part;
  if (limited || !by_asker) return;
  if (asked.may_close_cycle()) check_for_cycle(asked, awaiting);
  change(asked, ask_link::wait::waits);
}

TROUPE_INLINE bool begin_wait(suspension& wait, observer& for_result, shared_state& state,
                              coroutine& awaiting) noexcept {
  wait.begin(awaiting);
  if (shot(state.word).attach(for_result)) [[likely]]
    return true;
  wait.forget();
  return false;
}

// These two are apart, so that a wait for another result saves no registers.
TROUPE_NOINLINE bool search_and_wait(suspension& wait, observer& for_result, shared_state& state,
                                     coroutine& awaiting) noexcept {
  awaiting.call->at->search_soon(awaiting.call->actor);
  return begin_wait(wait, for_result, state, awaiting);
}
TROUPE_INLINE bool wait_for_result(suspension& wait, observer& for_result, shared_state& state,
                                   coroutine& awaiting) noexcept {
  // order: relaxed  a search that begins now comes too early for this wait; the thread that parks
  // the actor asks again
  if (!wait.limited && !awaiting.call->at->searched_soon->load(std::memory_order_relaxed))
      [[unlikely]]
    return search_and_wait(wait, for_result, state, awaiting);
  return begin_wait(wait, for_result, state, awaiting);
}
TROUPE_NOINLINE bool wait_for_answer(suspension& wait, observer& for_result, shared_state& state,
                                     coroutine& awaiting) {
  note_ask(*state.asked, awaiting, wait.limited);
  return wait_for_result(wait, for_result, state, awaiting);
}

}  // namespace

bool future_wait::suspend(coroutine& awaiting) {
  if (awaiting.call->cancelled) [[unlikely]] {
    ended = outcome::cancelled;
    return false;
  }
  return state_->asked != nullptr ? wait_for_answer(*this, *this, *state_, awaiting)
                                  : wait_for_result(*this, *this, *state_, awaiting);
}

void throw_refused(const suspension& wait) {
  throw deadlock(runtime_state::of(wait.waiter->call->actor).actors->take_refusal(wait));
}

void future_wait::throw_early_end() const {
  if (ended == outcome::deadlock) {
    if (state_->asked != nullptr) change(*state_->asked, ask_link::wait::refused);
    throw_refused(*this);
  }
  if (ended == outcome::cancelled) throw cancelled("troupe: the wait for a result was cancelled");
  throw timed_out("troupe: the result did not come in time");
}

const char* future_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "a future";
  auto& self = static_cast<future_wait&>(*static_cast<suspension*>(base));
  if (act != sched::message_act::detach) return arrive(self, act);
  if (!self.state_->detach(self)) return nullptr;
  self.give_up();
  return "detached";
}

void future_wait::give_up() const noexcept {
  if (state_->asked != nullptr) change(*state_->asked, ask_link::wait::given_up);
}

const shared_state* awaited_by(const suspension& wait) noexcept {
  return wait.act == &future_wait::act_on ? static_cast<const future_wait&>(wait).state_ : nullptr;
}

const ask_link* asked_by(const suspension& wait) noexcept {
  const shared_state* const state = awaited_by(wait);
  return state == nullptr ? nullptr : state->asked;
}

bool refuse(suspension& wait) noexcept {
  return wait.act(&wait, nullptr, sched::message_act::detach) != nullptr;
}

void future_wait::on_resolved(observer& self) noexcept {
  static_cast<future_wait&>(self).over(outcome::arrived);
}

// Called by a timer or a stop, on any thread. The thread that detaches the wait from the result has
// ended it.
void future_wait::end_early(outcome how) noexcept {
  if (!state_->detach(*this)) return;
  give_up();  // the turn continues without the answer
  over(how);
}

bool limited_suspension::suspend(coroutine& awaiting, std::chrono::nanoseconds at_most,
                                 const std::stop_token& stop) {
  if (at_most.count() <= 0 || stop.stop_requested()) {
    ended = stop.stop_requested() ? outcome::cancelled : outcome::timed_out;
    return false;
  }
  limited = at_most != std::chrono::nanoseconds::max() || stop.stop_possible();
  if (!future_wait::suspend(awaiting)) return false;
  // From here on the wait may be over at any time. But `this` stays alive, since its coroutine
  // resumes only after this turn.
  try {
    if (at_most != std::chrono::nanoseconds::max()) {
      timers& clock = *awaiting.call->at->clock;
      arm(clock, *this, due_in(clock, at_most));
      armed_ = true;
    }
    if (stop.stop_possible()) stop_.emplace(stop, on_stop{*this});
  } catch (...) {
    if (!state_->detach(*this)) return true;  // the result has arrived already
    forget();
    throw;
  }
  return true;
}

void limited_suspension::on_time(timer& self) noexcept {
  static_cast<limited_suspension&>(self).end_early(outcome::timed_out);
}

void limited_suspension::finish() {
  stop_.reset();  // waits for a callback that is running
  if (armed_) cancel(*waiter->call->at->clock, *this);
  future_wait::finish();
}

}  // namespace troupe::tasks
