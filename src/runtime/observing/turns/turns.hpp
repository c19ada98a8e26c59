// turns: the last turns of the flight recorders, as the answer to a question.
#pragma once

#include <cstddef>

#include "runtime/observing/numbers/json_text.hpp"

namespace troupe::observing {

// Whether any thread has a flight recorder.
bool are_turns_recorded() noexcept;

// Writes a value with the newest records of all threads, newest first, at most that many. Threads
// record meanwhile; records that were overwritten before they were read are left out. Throws
// std::bad_alloc.
void write_turns(json_text& text, std::size_t most);

}  // namespace troupe::observing
