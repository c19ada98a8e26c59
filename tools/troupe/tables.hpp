// tables: what `troupe top` shows, as lines of text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.hpp"

namespace troupe_tool {

// Actors are sorted by mail, or by id (`name`).
enum class order { messages, busy, wait, alive, failures, name };

// Two answers to `summary`, some time apart; rates are those between them. `before` may be null:
// then they are those since the start.
struct moment {
  json before, now;
};

// Whether the user should look at a line first.
enum class severity { none, notice, trouble };

// A line, and what it is about: a class of a runtime, and one of its actors (0: none).
struct table_line {
  std::string text;
  std::size_t runtime = 0;
  std::string of_class{};
  std::uint64_t actor = 0;
  std::string warning{};  // which one, for `warning_text`
  severity how_bad = severity::none;
};
struct table {
  std::string head;  // names the columns
  std::vector<table_line> lines;
};

// No line of these is longer than `width`.
// The head: the program, its runtimes and workers, and its nodes of clusters.
std::vector<table_line> head_lines(const moment& seen, std::size_t width);
// A line for each handler. A * marks the column by which they are sorted.
table handler_table(const moment& seen, order by, std::size_t width);
// A line for each kind of I/O operation, each class of lazies, and each source of timers.
table work_table(const moment& seen, std::size_t width);
// A line for each actor of an answer to `longest` or `actors`, which has sorted them.
table actor_table(const json& page, std::size_t runtime, order by, std::size_t width);
// The addresses of a program's pages, and of other nodes' pages. `runtime` is one of the answer
// `summary`.
std::vector<std::string> page_lines(const json& runtime);
// A line for each node of the clusters of which the program is a part.
table member_table(const json& summary, std::size_t width);
// A line for each kind of call of an answer to `actor`; a call that asks another actor is about
// that one.
table call_table(const json& story, std::size_t runtime, std::size_t width);
// What an answer to `actor` says of the actor itself.
std::string story_line(const json& story, std::uint64_t id, std::size_t width);

}  // namespace troupe_tool
