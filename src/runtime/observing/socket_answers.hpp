// socket_answers: the answer of the observation socket to one question.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe::observing {

struct observed_runtime;

// Returns one line of JSON. A question that is not understood gets an object with `error`, which
// lists the valid questions. Throws std::bad_alloc.
std::string answer(std::string_view question, std::span<observed_runtime* const> runtimes);
// Returns the duration of the trace that `trace MILLISECONDS` asks for; nothing for other
// questions.
std::optional<std::int64_t> trace_ms_of(std::string_view question) noexcept;
// Returns an object with `error`. Throws std::bad_alloc.
std::string refusal(std::string_view why);

}  // namespace troupe::observing
