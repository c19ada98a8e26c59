// trace_job: the events of a lazy in a trace.
#pragma once

#include "troupe/jobs/job.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::jobs {

// The job's number, which it gets here if it has none. Thread: any.
std::uint32_t number_in_trace(job& job) noexcept;

// While a trace is taken.
void record_job(observe::event kind, job& job, bool was_queued) noexcept;

TROUPE_INLINE void trace_job(observe::event kind, job& item, bool was_queued = false) noexcept {
  if (observe::tracing()) [[unlikely]]
    record_job(kind, item, was_queued);
}

}  // namespace troupe::jobs
