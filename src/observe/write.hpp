// write: writes a trace for people or for viewers. Signal handlers may call it.
#pragma once

#include <cstdint>

#include "observe/output.hpp"
#include "observe/ring.hpp"
#include "observe/ticks.hpp"

namespace troupe::observe {

// Writes Chrome's format in parts: begin(), add() for each thread, end().
class chrome_writer {
 public:
  // The trace began at `began`, and is over.
  explicit chrome_writer(const tick_scale& began) noexcept : began_(began) {}

  void begin(output& to) noexcept;
  void add(output& to, const ring& source) noexcept;
  void end(output& to) noexcept;

 private:
  const tick_scale began_, now_;
  std::uint64_t lost_ = 0;
};

// Writes Chrome's format, which ui.perfetto.dev and speedscope open. Returns false when something
// could not be written.
bool write_chrome(int fd, const tick_scale& began) noexcept;

// Writes a table: thread, lazies queued, threads that are idle or wait for a lazy, time, event. It
// leaves out the events of earlier tables.
bool write_table(int fd, const tick_scale& began) noexcept;

}  // namespace troupe::observe
