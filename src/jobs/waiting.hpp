// waiting: the threads that wait for jobs, and who waits for whom.
//
// A thread waits for one job at a time, which another thread runs; so the chain from a job over its thread to what that waits
// for is exact, and one that comes back is a deadlock. It is found by the last one that begins to wait, under one mutex.
#pragma once

#include <atomic>

#include "base/parker.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// Never freed, but used again by another thread: whoever follows a chain may look at one whose job has just ended.
struct waiting_thread {
  base::parker parker;
  std::atomic<job*> waits_for{nullptr};  // changed under the mutex
  waiting_thread* next_free = nullptr;
};

// The calling thread's. Ends the program when memory is out for a thread's first call.
TROUPE_NOINLINE waiting_thread& make_this_thread() noexcept;
extern constinit thread_local waiting_thread* own_thread [[gnu::tls_model("initial-exec")]];
inline waiting_thread& this_thread() noexcept { return own_thread != nullptr ? *own_thread : make_this_thread(); }

// The calling thread waits for what another one does for this job. Throws deadlock when that would come back to it.
class waits_for {
 public:
  explicit waits_for(job& of);
  waits_for(const waits_for&) = delete;
  waits_for& operator=(const waits_for&) = delete;
  ~waits_for();

 private:
  waiting_thread& self_;
};

// Sleeps until the job is done, which another thread runs.
void wait_until_done(job& of);

// Adds the waiter. False when the job is done already.
bool attach(job& of, waiter& one) noexcept;
// The job is done: tells all who wait. The caller has a ref.
void finish(job& of) noexcept;

}  // namespace troupe::jobs
