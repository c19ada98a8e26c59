#include "troupe/parallel/schedule.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "actor/spawned/keeping.hpp"
#include "troupe/actor/blocking.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::submissions {
namespace {

// A sleep that a stop token can end: true when its time came, false when the stop did.
class pausing final : public tasks::suspension, public tasks::timer {
 public:
  pausing(std::chrono::nanoseconds span, const schedule& of) noexcept
      : suspension(&act_on),
        timer(&on_time, of.weak),
        span_(span),
        stop_(of.stop),
        where_(of.where) {
    excused = of.weak;
  }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    tasks::coroutine& me = awaiting.promise();
    if (me.in->cancelled || stop_.stop_requested()) {
      ended = tasks::outcome::cancelled;
      cancelled_ = me.in->cancelled;
      return false;
    }
    who = &me;
    me.awaits_at = where_;
    clock_ = me.in->at->clock;
    tasks::arm(*clock_, *this, tasks::due_in(*clock_, span_));
    enlist(me);  // if the sleep is over already, this turn still ends before the call resumes
    if (stop_.stop_possible()) callback_.emplace(stop_, on_stop{*this});
    return true;
  }
  bool await_resume() {
    callback_.reset();  // waits for a callback that is running
    if (ended == tasks::outcome::arrived) return true;
    if (cancelled_ || who->in->cancelled)
      throw cancelled("troupe: submit: the call's time had not come when it was ended");
    return false;
  }

 private:
  struct on_stop {
    pausing& self;
    void operator()() const noexcept {
      if (tasks::cancel(*self.clock_, self)) self.over(tasks::outcome::cancelled);
    }
  };
  static void on_time(timer& self) noexcept {
    static_cast<pausing&>(self).over(tasks::outcome::arrived);
  }
  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return "the time of a submitted call";
    auto& self = *static_cast<pausing*>(base);
    if (act != sched::message_act::detach) return arrive(self, act);
    return tasks::cancel(*self.clock_, self) ? "detached" : nullptr;
  }

  const std::chrono::nanoseconds span_;
  const std::stop_token& stop_;
  const tasks::source_line where_;
  tasks::timers* clock_ = nullptr;
  bool cancelled_ = false;
  std::optional<std::stop_callback<on_stop>> callback_;
};

// With a constructor, for GCC 12's sake (task.hpp).
class pause {
 public:
  pause(std::chrono::nanoseconds span, const schedule& of) noexcept : span_(span), of_(of) {}
  pausing operator co_await() const noexcept { return pausing(span_, of_); }

 private:
  std::chrono::nanoseconds span_;
  const schedule& of_;
};

// Waits for an event. Messages name the user's line as the place of the wait, not the library's.
class event_awaiter {
 public:
  explicit event_awaiter(const schedule& of)
      : wait_(of.when->wait().timeout(of.at_most).stop(of.stop).operator co_await()),
        where_(of.where) {}
  event_awaiter(event_awaiter&&) = delete;
  bool await_ready() const noexcept { return wait_.await_ready(); }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) {
    who.promise().awaits_at = where_;
    return wait_.await_suspend(who);
  }
  void await_resume() { wait_.await_resume(); }

 private:
  future<>::limited::awaiter wait_;
  const tasks::source_line where_;
};

class event_wait {
 public:
  explicit event_wait(const schedule& of) noexcept : of_(of) {}
  event_awaiter operator co_await() const { return event_awaiter(of_); }

 private:
  const schedule& of_;
};

task<bool> wait_for_event(schedule& of) {
  try {
    co_await event_wait(of);
  } catch (const cancelled&) {
    if (!of.stop.stop_requested()) throw;
    co_return false;
  } catch (const timed_out&) {
    throw timed_out("troupe: submit_when: the event was not set in time");
  }
  co_return true;
}

}  // namespace

task<bool> wait_to_begin(schedule& of) {
  if (of.stop.stop_requested()) co_return false;
  if (of.when) {
    const bool set = co_await wait_for_event(of);
    co_return set;
  }
  if (of.after.count() <= 0 && of.every.count() <= 0) co_return true;
  const std::int64_t now_ns = now().count();
  std::int64_t span = of.after.count();
  if (of.every.count() > 0) {
    const std::int64_t period = of.every.count();
    // Missed periods are skipped.
    const bool beyond = std::max(now_ns, of.due_ns) > INT64_MAX - period;  // the largest time
    if (beyond && of.due_ns != 0) co_return false;
    if (beyond) {
      of.due_ns = INT64_MAX;
    } else if (of.due_ns == 0) {
      of.due_ns = now_ns + period;
    } else {
      of.due_ns += std::max<std::int64_t>(1, (now_ns - of.due_ns + period - 1) / period) * period;
    }
    span = of.due_ns - now_ns;
  }
  const bool came = co_await pause(std::chrono::nanoseconds(span), of);
  co_return came;
}

void start(runtime* rt, task<> run) {
  if (rt != nullptr) {
    rt->spawn(std::move(run));
  } else {
    actor::spawn_task(actor::placement{actor::running_system("submit")}, std::move(run));
  }
}

namespace {

const char* describe_call(sched::message*, void*, sched::message_act) { return "a submitted call"; }

}  // namespace

void end_cancelled(std::exception_ptr what, owned_context of) {
  bool is_own = false;
  try {
    std::rethrow_exception(what);
  } catch (const cancelled&) {
  } catch (...) {
    is_own = true;
  }
  if (is_own) report(std::move(what), std::move(of));
  what = nullptr;
  throw cancelled("troupe: submit: the call was ended while it waited");
}

void report(std::exception_ptr what, owned_context of, sched::message::handler describes) noexcept {
  actor::kept_memory keeps;  // destroyed after the exception, which is handed on
  try {
    if (of) keeps.bytes = of->bytes();
    keeps.held = std::make_shared<owned_context>(std::move(of));
  } catch (const std::bad_alloc&) {
    // The error itself is still reported.
  }
  actor::report_keeping(describes != nullptr ? describes : &describe_call, std::move(what),
                        std::move(keeps));
}

// A message of its own: at the runtime's end it may outlive the task that waits for it, and is then
// discarded.
struct turn_of_actor final : sched::message {
  turn_of_actor(void* given, void (*runs)(void*) noexcept) noexcept
      : message(&act_on), what(given), run(runs) {}

  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return sched::described_as_submitted;
    const std::unique_ptr<turn_of_actor> self(static_cast<turn_of_actor*>(base));
    const bool handled = act == sched::message_act::handle;
    if (handled) self->run(self->what);
    self->done.set_value(handled);
    return nullptr;
  }

  void* const what;
  void (*const run)(void*) noexcept;
  promise<bool> done;
};

future<bool> run_in_turn(void* actor, void* what, void (*run)(void* what) noexcept) {
  auto mail = std::make_unique<turn_of_actor>(what, run);
  future<bool> done = mail->done.get_future();
  tasks::send_to_actor(actor, *mail);
  mail.release();
  return done;
}

actor_hold::actor_hold() noexcept : held_(tasks::hold_current_actor()) {}
actor_hold::~actor_hold() {
  if (held_ != nullptr) tasks::drop_actor(held_);
}

}  // namespace troupe::submissions
