// first_word: the first words of a statement, behind spaces and comments.
#pragma once

#include <string>
#include <string_view>

namespace troupe::postgres {

// In capital letters; empty if there is none. `text` begins behind it afterwards.
std::string take_word(std::string_view& text);

// Why a prepared statement may not begin so; null if it may. A statement that begins or ends a
// transaction would change the meaning of the statements that travel with it.
const char* why_refused(std::string_view text);

// The same for the statements of a script within a transaction scope. `backslashes`: whether a
// backslash in a plain text escapes the next character (standard_conforming_strings = off).
const char* why_script_refused(std::string_view text, bool backslashes);

// Whether the statement may commit a part of its work by itself, as a procedure can.
bool may_commit_inside(std::string_view text);

}  // namespace troupe::postgres
