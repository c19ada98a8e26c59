#pragma once

#include <chrono>

#include "task/running/main_lanes.hpp"

namespace troupe::test {

// How long another thread has to call run(). Short where a test waits for a refusal, and without
// end where there must be none.
class time_to_call_run {
 public:
  explicit time_to_call_run(std::chrono::nanoseconds time)
      : before_(tasks::main_lanes::time_to_call_run()) {
    tasks::main_lanes::set_time_to_call_run(time);
  }
  time_to_call_run(const time_to_call_run&) = delete;
  time_to_call_run& operator=(const time_to_call_run&) = delete;
  ~time_to_call_run() { tasks::main_lanes::set_time_to_call_run(before_); }

 private:
  const std::chrono::nanoseconds before_;
};

}  // namespace troupe::test
