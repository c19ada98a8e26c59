// subject: which subjects, queue groups and header names NATS allows.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::nats {

// The longest line of the protocol.
inline constexpr std::size_t line_bytes_max = 4'096;
// The longest subject: two of them and the numbers fit into a line.
inline constexpr std::size_t subject_bytes_max = 1'900;

// The defect of the subject; null: none. Tokens are separated by dots, none is empty, none has a
// space or a control character. Only subscriptions have `*` for a token and `>` for the rest.
const char* misfit_to_publish(std::string_view subject) noexcept;
const char* misfit_to_subscribe(std::string_view subject) noexcept;
const char* misfit_of_queue(std::string_view name) noexcept;

// Throw error (bad_subject) with the defect.
void check_to_publish(std::string_view subject);
void check_to_subscribe(std::string_view subject);
void check_queue(std::string_view name);

}  // namespace troupe::nats
