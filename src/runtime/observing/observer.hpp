// observer: answers questions about the runtimes of this process on a Unix socket, for tools of the
// same user (docs/guide/observing.md).
//
// One thread for all observed runtimes of the process answers, and looks for conditions that are
// worth a warning (warning_watch.hpp); it takes no signals and keeps no program alive. Each
// question is one line, each answer is one line of JSON.
#pragma once

#include <string>
#include <string_view>

namespace troupe {
class runtime_core;
namespace observe {
class number_tables;
}
}  // namespace troupe

namespace troupe::observing {

// From now on questions about this runtime are answered. The first one of a process starts the
// thread and makes the socket. Where that is not possible, it is reported and tried again
// (docs/protocols/side_channels.md). Throws std::bad_alloc.
void begin(runtime_core& core);
// The same answers for this process itself: of all runtimes that are observed. Thread: any, except
// that it waits for an answer that is being made. Throws std::bad_alloc.
std::string ask(std::string_view question);
// All numbers of the process and of its observed runtimes. Thread and errors as ask().
void collect_all(observe::number_tables& tables);
// The path of the socket; empty if no runtime is observed, or no socket can be made. Thread: any.
// Throws std::bad_alloc.
std::string socket_path();
// Waits for an answer about this runtime that is being made. The last one ends the thread and
// removes the socket. Does nothing for a runtime that was not begun.
void end(runtime_core& core) noexcept;

}  // namespace troupe::observing
