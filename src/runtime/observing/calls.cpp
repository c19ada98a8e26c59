#include "runtime/observing/calls.hpp"

#include "actor/system/actor_system.hpp"
#include "runtime/observing/observed_runtime.hpp"

namespace troupe::observing {

std::string wait_text(const actor::suspended_call& call) {
  if (call.guarded) return "its predicate";
  if (!call.waits_for) return "something of its own";
  return std::string(call.waits_for->event) + call.waits_for->method;
}

std::string wait_place(const actor::suspended_call& call) {
  if (!call.waits_for || call.waits_for->at.line() == 0) return {};
  return actor::place_of(call.waits_for->at);
}

void write_call(json_text& out, const actor::suspended_call& call,
                const observed_runtime& observed) {
  const actor::actor_system& system = *observed.core.system;
  out.open('{').member("handler", call.method).member("at", wait_place(call));
  out.member("for", wait_text(call));
  if (call.waits_for && call.waits_for->asked != nullptr)
    out.member("asked", system.slots.find_number(call.waits_for->asked));
  if (call.waits_for && call.waits_for->held_since.line() != 0)
    out.member("held_since", actor::place_of(call.waits_for->held_since));
  if (call.waits_for && call.waits_for->first_seen != 0)
    out.member("waits_ns", observed.watch.ns_since(call.waits_for->first_seen));
  out.close('}');
}

}  // namespace troupe::observing
