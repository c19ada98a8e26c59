#include "troupe/task/current_actor.hpp"

#include <string>
#include <utility>

#include "task/running/actor_functions.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::tasks {
namespace {

// order: relaxed  the thread's own
void* actor_here() noexcept { return running_here().actor.load(std::memory_order_relaxed); }

const char* describe_callback(sched::message*, void*, sched::message_act) {
  return sched::described_as_callback;
}

}  // namespace

void* hold_current_actor() noexcept {
  void* const running = actor_here();
  if (running != nullptr) runtime_state::of(running).actors->add_ref(running);
  return running;
}
void hold_actor(void* actor) noexcept { runtime_state::of(actor).actors->add_ref(actor); }
bool is_current_actor(const void* actor) noexcept { return actor_here() == actor; }
void drop_actor(void* held) noexcept { runtime_state::of(held).actors->drop_ref(held); }
void send_to_actor(void* held, sched::message& mail) {
  runtime_state::of(held).actors->send(held, mail);
}

bool is_part_of_current_actor(const void* object) noexcept {
  void* const running = actor_here();
  return running != nullptr && runtime_state::of(running).actors->contains(running, object);
}

bool is_discarding(const void* actor) noexcept { return runtime_state::of(actor).discarding(); }

void report_unheard(std::exception_ptr failure) noexcept {
  void* const running = actor_here();
  if (running == nullptr) std::terminate();
  runtime_state::of(running).actors->report(&describe_callback, std::move(failure));
}

sched::io_driver_slot* current_io() noexcept {
  void* const running = actor_here();
  return running == nullptr ? nullptr : runtime_state::of(running).host.io;
}

call_context* exchange_context(call_context* within) noexcept {
  return std::exchange(running_here().context, within);
}
call_context* current_context() noexcept {
  const running_state& state = running_here();
  if (state.context != nullptr) return state.context;
  return state.running_call == nullptr ? nullptr : state.running_call->context;
}

void check_may_block(const char* operation) {
  if (!is_running()) return;
  throw usage_error(std::string("troupe: ") + operation +
                    ": a handler must not hold its thread; co_await the future, or use then()");
}

}  // namespace troupe::tasks
