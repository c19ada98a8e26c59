// first_word: the first words of a statement, behind spaces and comments.
#pragma once

#include <string>
#include <string_view>

namespace troupe::postgres {

// In capital letters; empty if there is none. `text` begins behind it afterwards.
std::string take_word(std::string_view& text);

// Why a prepared statement may not begin so; null if it may. What begins or ends a transaction
// would change what the statements that travel with it mean.
const char* why_refused(std::string_view text);

}  // namespace troupe::postgres
