// failure_lines: writes failures as lines to standard error, at most so many in a second; lines
// that are left out are counted.
//
// Threads: any. The mutex guards only the counts: it is not held while the user's what() runs or a
// line is written. A line is written at once or not at all: if the reader of standard error has
// stopped reading, it holds a thread up for at most 20 ms, and the line counts as left out. A
// closed standard error does no harm, and no SIGPIPE comes of it.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "actor/system/actor_system.hpp"

namespace troupe {

class failure_lines {
 public:
  explicit failure_lines(unsigned a_second_max) : a_second_max_(a_second_max) {}

  struct report {
    bool written;
    // the caller must have on_time() called after a second, or call cannot_arm()
    bool arm;
  };
  report tell(const std::exception_ptr& failure, const actor::failed_call& where) noexcept;
  void cannot_arm() noexcept;
  // Writes how many lines were left out so far, if any were.
  void tell_left_out() noexcept;
  // The same, by the timer that `arm` asked for.
  void on_time() noexcept;
  // Whether lines are wanted at all.
  bool any() const noexcept { return a_second_max_ != 0; }

  // Without the limit, for the runtime's end.
  static bool write_failure(const std::exception_ptr& failure, const actor::failed_call& where,
                            std::uint64_t left_out_before) noexcept;
  static void write_text(const char* text) noexcept;

 private:
  const unsigned a_second_max_;
  std::mutex mutex_;
  std::int64_t began_ns_ = 0;  // of the current second
  unsigned written_ = 0;       // in that second
  std::uint64_t left_out_ = 0;
  bool armed_ = false;
};

}  // namespace troupe
