// visible: all output of the tool. What it prints comes from programs, databases and file names,
// whose authors may be hostile: nothing of it may control the terminal.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace troupe_tool {

// A text for a terminal: what is no UTF-8 or no printable character is written as \xNN. So are line
// breaks, and characters that change the direction of the text.
std::string shown(std::string_view text);

// Writes the text so, but for its line breaks.
void put(std::string_view text, std::FILE* to = stdout);
// The same for numbers in Prometheus's text format, which refuses `\x`: as \\xNN.
void put_metrics(std::string_view text);

template <class... Values>
void print(fmt::format_string<Values...> form, Values&&... values) {
  put(fmt::format(form, std::forward<Values>(values)...));
}

// One line, whatever the text has in it.
void print_line(std::string_view text);

// Throws failure if something that was written to standard output has not arrived there.
void end_output();

}  // namespace troupe_tool
