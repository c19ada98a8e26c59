// relations: where the time of an observed runtime goes, thread by thread, and how its classes and
// actors depend on each other.
#pragma once

#include <cstdint>

#include "runtime/observing/numbers/json_text.hpp"

namespace troupe::observing {

struct observed_runtime;

// All append an object, and throw std::bad_alloc.

// For each thread that has handled messages: its classes, and their handlers with messages and
// time.
void write_threads(json_text& out, observed_runtime& observed);

// The suspended calls, grouped by class, handler, line and awaited event, with the size of each
// group. Also the classes of actors and of their parents.
void write_waits(json_text& out, observed_runtime& observed);

// One actor: its entry in the list of actors, and the waits of its suspended calls. `actor` is
// null if there is no actor with this id.
void write_story(json_text& out, observed_runtime& observed, std::uint64_t id);

}  // namespace troupe::observing
