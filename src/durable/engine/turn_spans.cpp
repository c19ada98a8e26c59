// The spans of traces: of each turn whose message came within one that is recorded, and of each
// commit for which a caller in one waits.
#include <string>

#include "durable/engine/turns.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::durable::parts {

// Refers to none if no span is recorded. Not under the mutex.
tasks::context_ref turns::begin_turn_span(const record& message) {
  if (message.trace.get() == nullptr) [[likely]]
    return {};
  tasks::context_ref context = tasks::context_ref::make_spanned(
      *message.trace.get(), tasks::span_kind::internal, "durable turn");
  if (context.get() == nullptr) return {};
  tasks::name_span(*context.get(), message.row.to.kind + "::" + message.row.method);
  tasks::add_to_span(*context.get(), "troupe.actor.class", std::string_view(message.row.to.kind));
  return context;
}

// A handler that is a task, in the trace of its message.
task<outcome> turns::in_trace(task<outcome> handler, const tasks::context_ref& within) {
  if (within.get() == nullptr) [[likely]]
    return handler;
  tasks::task_limits limits;
  limits.within = within.share();
  return tasks::run_within(std::move(handler), std::move(limits));
}

}  // namespace troupe::durable::parts
