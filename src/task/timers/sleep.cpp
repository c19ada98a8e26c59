#include "troupe/task/timer.hpp"

#include <algorithm>
#include <chrono>

#include "task/timers/timers.hpp"
#include "troupe/base/error.hpp"

namespace troupe::tasks {

void arm(timers& clock, timer& entry, std::int64_t due_ns) { clock.arm(entry, due_ns); }
bool cancel(timers& clock, timer& entry) noexcept { return clock.cancel(entry); }
std::int64_t now_ns(const timers& clock) noexcept { return clock.now_ns(); }

std::int64_t due_in(const timers& clock, std::chrono::nanoseconds span) noexcept {
  const std::int64_t now = clock.now_ns();
  if (span.count() <= 0) return now;
  return span.count() > timers::last_ns - now ? std::max(timers::last_ns, now) : now + span.count();
}

bool sleep_suspension::suspend(coroutine& sleeper) {
  async_call& call = *sleeper.call;
  if (call.cancelled) {
    ended = outcome::cancelled;
    return false;
  }
  this->waiter = &sleeper;
  arm(*call.at->clock, *this, due_in(*call.at->clock, std::chrono::nanoseconds(due_tick)));
  enlist(sleeper);  // if the sleep is over already, this turn still ends before the task resumes
  return true;
}

void sleep_suspension::on_time(timer& self) noexcept {
  static_cast<sleep_suspension&>(self).over(outcome::arrived);
}

const char* sleep_suspension::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "sleep_for";
  auto& self = *static_cast<sleep_suspension*>(base);
  if (act != sched::message_act::detach) return arrive(self, act);
  return cancel(*self.waiter->call->at->clock, self) ? "detached" : nullptr;
}

void sleep_suspension::await_resume() const {
  if (ended == outcome::cancelled)
    throw cancelled("troupe: sleep_for: the actor of this task was stopped");
}

bool yield_wait::suspend(coroutine& awaiting) noexcept {
  waiter = &awaiting;
  if (awaiting.call->cancelled) return false;
  enlist(awaiting);
  awaiting.call->at->go_on_later(*this);
  return true;
}

// It cannot be detached: it resumes after this turn in any case.
const char* yield_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "yield";
  if (act == sched::message_act::detach) return nullptr;
  return arrive(static_cast<suspension&>(*base), act);
}

void yield_wait::await_resume() const {
  if (waiter->call->cancelled) throw cancelled("troupe: yield: the actor of this task was stopped");
}

}  // namespace troupe::tasks
