// child: one execution of a program in a process of its own, by a plan.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/searching/shrinking.hpp"

namespace troupe_tool {

// A new folder for the files of the executions; it goes with the object.
class work_folder {
 public:
  work_folder();
  work_folder(const work_folder&) = delete;
  work_folder& operator=(const work_folder&) = delete;
  ~work_folder();
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// Runs the program; the files have names that begin with `stem`. It fails by a signal, by a status
// that is not 0, and if it does not end within the limit; then it is killed with its children.
// Throws failure if it cannot be started. Thread: any, with different stems.
troupe::sched::exploring::outcome run_child(const std::vector<std::string>& program,
                                            const std::string& stem,
                                            const troupe::sched::exploring::kept_schedule& plan,
                                            std::chrono::milliseconds limit);

}  // namespace troupe_tool
