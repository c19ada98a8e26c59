// calls: the suspended calls of an observed runtime, as words and as JSON.
#pragma once

#include <string>

#include "actor/waits/suspended.hpp"
#include "runtime/observing/numbers/json_text.hpp"

namespace troupe::observing {

struct observed_runtime;

// All throw std::bad_alloc.

// The event that the call awaits.
std::string wait_text(const actor::suspended_call& call);
// The file and the line of the wait; empty if they are not known.
std::string wait_place(const actor::suspended_call& call);

// Appends an object: the handler, the line, the awaited event and the begin of the wait.
void write_call(json_text& out, const actor::suspended_call& call,
                const observed_runtime& observed);

}  // namespace troupe::observing
