// answers: what the observer says to one question.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {
class runtime_core;
}

namespace troupe::observing {

// Returns one line of JSON. A question that is not understood gets an object with `error`, which
// says what may be asked. Throws std::bad_alloc.
std::string answer(std::string_view question, std::span<runtime_core* const> cores);

}  // namespace troupe::observing
