// run: how a thread claims a job and runs it at once.
#pragma once

#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// True for the first caller: it must run the job.
bool claim(job& job) noexcept;
// The caller has claimed the job, and has a ref. Reports an exception that no handle can give.
void run(job& job) noexcept;
// In place of run(): threads that wait for the job, or need it later, find it cancelled.
void cancel(job& job) noexcept;

// False in a handler, which must not hold its thread.
bool may_block_here() noexcept;
// While this lives the thread may block, though it is inside a handler: for serial_lazies.
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
