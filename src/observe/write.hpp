// write: writes a trace for people or for viewers. Signal handlers may call it.
#pragma once

#include "observe/ticks.hpp"

namespace troupe::observe {

// Writes Chrome's format, which ui.perfetto.dev and speedscope open. Returns false when something
// could not be written.
bool write_chrome(int fd, const tick_scale& began) noexcept;

// Writes a table: thread, lazies queued, threads asleep, time, event. It leaves out what an earlier
// table has shown.
bool write_table(int fd, const tick_scale& began) noexcept;

}  // namespace troupe::observe
