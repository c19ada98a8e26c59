// run: how a job is claimed and run, here and now.
#pragma once

#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// True for the first caller, who must run it.
bool claim(job& one) noexcept;
// The caller has claimed it, and has a ref. What nobody can hear is reported.
void run(job& one) noexcept;
// Instead of that: who waits for it, or wants it later, finds it cancelled.
void cancel(job& one) noexcept;

// False in a handler, which must not hold its thread.
bool may_block_here() noexcept;
// What runs until the end of this may, though it is inside a handler: serial_lazies.
class blocking_allowed {
 public:
  blocking_allowed() noexcept;
  blocking_allowed(const blocking_allowed&) = delete;
  blocking_allowed& operator=(const blocking_allowed&) = delete;
  ~blocking_allowed();

 private:
  const bool before_;
};

}  // namespace troupe::jobs
