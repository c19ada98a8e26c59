// failure_lines: failures as lines on standard error, so many a second at most; those that are left
// out are counted.
//
// Threads: any. The mutex guards the counts only, and is not held while the user's what() runs or a
// line is written. A line is written at once or not at all: a reader of standard error that has
// stopped reading holds a thread up for 20 ms at most, and its line counts as left out. A standard
// error that is closed does no harm, nor does a SIGPIPE come of it.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

#include "actor/actor_system.hpp"

namespace troupe {

class failure_lines {
 public:
  explicit failure_lines(unsigned a_second_max) : a_second_max_(a_second_max) {}

  struct told {
    bool written;
    // the caller is to have tell_left_out() called after a second, or to say cannot_arm()
    bool arm;
  };
  told tell(const std::exception_ptr& what, const actor::failed_call& where) noexcept;
  void cannot_arm() noexcept;
  // How many were left out so far, if any were.
  void tell_left_out() noexcept;
  // The same by what `arm` asked for.
  void on_time() noexcept;
  // Lines are wanted at all.
  bool any() const noexcept { return a_second_max_ != 0; }

  // Without a limit: for the runtime's end.
  static bool write_failure(const std::exception_ptr& what, const actor::failed_call& where,
                            std::uint64_t left_out_before) noexcept;
  static void write_text(const char* text) noexcept;

 private:
  const unsigned a_second_max_;
  std::mutex mutex_;
  std::int64_t began_ns_ = 0;  // the second
  unsigned written_ = 0;       // in it
  std::uint64_t left_out_ = 0;
  bool armed_ = false;
};

}  // namespace troupe
