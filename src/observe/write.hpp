// write: a trace as a file for people or for viewers. Also in signal handlers.
#pragma once

#include "observe/ticks.hpp"

namespace troupe::observe {

// Chrome's format, which ui.perfetto.dev and speedscope open. False when something could not be
// written.
bool write_chrome(int fd, const tick_scale& began) noexcept;

// A table: thread, lazies queued, threads asleep, time, event. What it has printed before it does
// not print again.
bool write_table(int fd, const tick_scale& began) noexcept;

}  // namespace troupe::observe
