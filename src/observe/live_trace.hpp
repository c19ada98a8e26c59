// live_trace: a trace of a program that runs, begun and ended while it runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "observe/ring.hpp"
#include "observe/ticks.hpp"
#include "observe/write.hpp"

namespace troupe::observe {

// Thread: one for all of the process, the observer's. Threads keep their newest 32,768
// events; the text of one thread is made at a time.
class live_trace {
 public:
  // Begins to record. Returns null if a trace is taken already, or another live_trace exists.
  static std::unique_ptr<live_trace> begin();
  live_trace(const live_trace&) = delete;
  live_trace& operator=(const live_trace&) = delete;
  ~live_trace();

  // Records no more.
  void end() noexcept;
  bool has_ended() const noexcept { return writer_.has_value(); }
  // Once it has ended: adds the next part of one line of JSON, in Chrome's format. Returns false if
  // there is none. Throws std::bad_alloc.
  bool add_part(std::string& to);

 private:
  enum class part { head, threads, foot, none };
  live_trace() noexcept;

  tick_scale began_;
  std::optional<chrome_writer> writer_;
  part next_ = part::head;
  const ring* next_ring_ = nullptr;
};

}  // namespace troupe::observe
