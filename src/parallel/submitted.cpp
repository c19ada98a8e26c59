#include "troupe/parallel/submitted.hpp"

#include <memory>
#include <utility>

#include "actor/state/kept_failure.hpp"
#include "troupe/actor/blocking.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/error.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::submissions {

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

void end_cancelled(std::exception_ptr failure, owned_context memory) {
  bool is_own = false;
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
  } catch (...) {
    is_own = true;
  }
  if (is_own) report(std::move(failure), std::move(memory));
  failure = nullptr;
  throw cancelled("troupe: submit: the call was ended while it waited");
}

void report(std::exception_ptr failure, owned_context memory,
            sched::message::handler describes) noexcept {
  actor::report_keeping(describes != nullptr ? describes : &describe_call, std::move(failure),
                        actor::keep_context(std::move(memory)));
}

// A message of its own: at the runtime's end it may outlive the task that waits for it, and is then
// discarded.
struct turn_of_actor final : sched::message {
  turn_of_actor(void* given, void (*runs)(void*) noexcept) noexcept
      : message(&act_on), argument(given), run(runs) {}

  static const char* act_on(sched::message* base, void*, sched::message_act act) {
    if (act == sched::message_act::describe) return sched::described_as_submitted;
    const std::unique_ptr<turn_of_actor> self(static_cast<turn_of_actor*>(base));
    const bool handled = act == sched::message_act::handle;
    if (handled) self->run(self->argument);
    self->done.set_value(handled);
    return nullptr;
  }

  void* const argument;
  void (*const run)(void*) noexcept;
  promise<bool> done;
};

future<bool> run_in_turn(void* actor, void* argument, void (*run)(void* argument) noexcept) {
  auto mail = std::make_unique<turn_of_actor>(argument, run);
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
