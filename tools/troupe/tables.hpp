// tables: what `troupe top` shows, as lines of text.
#pragma once

#include <string>
#include <vector>

#include "program.hpp"

namespace troupe_tool {

enum class order { messages, busy, wait, alive, failures, name };

// Two answers to `summary`, some time apart; rates are those between them. `before` may be null:
// then they are those since the start.
struct moment {
  json before, now;
};

// The head: the program, its runtimes and workers. No line here is longer than `width`.
std::vector<std::string> head_lines(const moment& seen, std::size_t width);
// A line for each handler; the first line names the columns.
std::vector<std::string> handler_lines(const moment& seen, order by, std::size_t width);
// The same for the actors of an answer to `longest` or `actors`.
std::vector<std::string> actor_lines(const json& page, std::size_t width);

}  // namespace troupe_tool
