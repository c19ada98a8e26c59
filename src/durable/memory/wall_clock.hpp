// wall_clock: the time of day, which begins at a fixed moment in a simulated program.
#pragma once

#include <chrono>

#include "troupe/runtime/runtime.hpp"

namespace troupe::durable::parts {

using due_time = std::chrono::sys_time<std::chrono::milliseconds>;

// Thread: any, when open() has returned.
class wall_clock {
 public:
  explicit wall_clock(runtime& on) noexcept : on_(on) {}

  // Called within a task of the program.
  void open() noexcept;
  due_time now() const;
  bool is_simulated() const noexcept { return simulated_; }

 private:
  runtime& on_;
  bool simulated_ = false;
};

}  // namespace troupe::durable::parts
