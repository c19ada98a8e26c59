// trace_file: `troupe trace`.
#pragma once

#include <chrono>
#include <string>

namespace troupe_tool {

// Returns the time that `5s`, `500ms`, `2m` or `5` (seconds) names. Throws failure, also if it is
// not between 1 ms and 10 minutes.
std::chrono::milliseconds duration_of(const std::string& text);

// Records what the program does for that time, and writes it to a new file. Throws failure; then
// there is no file.
void write_trace(int pid, std::chrono::milliseconds duration, const std::string& path);

// Records the same, and prints a table: thread, time, event. Throws failure.
void print_trace(int pid, std::chrono::milliseconds duration);

}  // namespace troupe_tool
