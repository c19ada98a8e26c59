#include "actor/mailbox/traced_message.hpp"

#include <memory>
#include <new>

#include "task/running/running.hpp"

namespace troupe::actor {

traced_message::traced_message(message& mail, tasks::call_context& in) noexcept
    : message(&act_on), inner(mail), trace(in) {
  tasks::hold_context(in);
}

const char* traced_message::act_on(message* base, void* object, message_act act) {
  if (act == message_act::describe) return "a message in a trace";
  const message_guard<traced_message> guard{static_cast<traced_message*>(base)};
  message& mail = guard.self->inner;
  if (act != message_act::handle) return mail.act(&mail, object, act);
  // order: relaxed  as in the turn: what a failure is reported for
  tasks::running_here().method.store(mail.act, std::memory_order_relaxed);
  const tasks::inside_context here(&guard.self->trace);
  return mail.act(&mail, object, act);
}

TROUPE_NOINLINE message& in_trace_of_sender(message& mail) noexcept {
  const tasks::call_context* const sender = tasks::current_context();
  if (sender == nullptr) return mail;
  tasks::call_context* const trace = tasks::trace_of(*sender);
  if (trace == nullptr) return mail;
  try {
    return *make_message<traced_message>(mail, *trace);
  } catch (const std::bad_alloc&) {
    return mail;
  }
}

}  // namespace troupe::actor
