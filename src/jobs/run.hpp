// run: how a job is claimed and run, here and now.
#pragma once

#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// True for the first caller, who must run it.
bool claim(job& one) noexcept;
// The caller has claimed it, and has a ref.
void run(job& one) noexcept;
// Instead of that: who waits for it, or wants it later, finds it cancelled.
void cancel(job& one) noexcept;

}  // namespace troupe::jobs
