// waiting_threads: the threads that wait for jobs and forks, and which of them waits for which.
//
// Every frame on a thread's stack needs the frames above it, and all of them need the job or fork
// for which the thread waits. One thread runs a job; a tree of forks needs each thread that has one
// of its fork frames on its stack. A path from a wait over threads to their waits is therefore
// exact, and a path that comes back is a deadlock. The last thread of a cycle that begins to wait
// searches for it, under one mutex.
#pragma once

#include <atomic>

#include "jobs/waits/trace_job.hpp"
#include "jobs/waits/waiting_thread.hpp"
#include "task/running/job_waits.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/job.hpp"
#include "troupe/jobs/shared_loop.hpp"

namespace troupe::jobs {

class job_pool;
struct fork_tree;

// The calling thread's entry. A thread's first call may throw std::bad_alloc: call it before
// anything that cannot be undone.
TROUPE_NOINLINE waiting_thread& make_this_thread();
inline waiting_thread& this_thread() {
  return this_stack.thread != nullptr ? *this_stack.thread : make_this_thread();
}

// While this lives the calling thread is listed as waiting for other threads.
class waits_for {
 public:
  // For a thread that sleeps until the job is done. Throws deadlock when it would wait for itself.
  explicit waits_for(const job& awaited);
  // For a thread that joins the thread that runs the job.
  struct joins {};
  waits_for(const job& awaited, joins) noexcept;
  // For a thread that sleeps until the tree has ended. In a cycle with this wait another thread's
  // wait for a job is refused.
  waits_for(const fork_tree& tree, const std::atomic<bool>& ended) noexcept;
  waits_for(const waits_for&) = delete;
  waits_for& operator=(const waits_for&) = delete;
  ~waits_for();

 private:
  waiting_thread& self_;
};

// Wakes each thread of this pool that sleeps until a tree has ended and has asked for work, so that
// it looks for a part.
void wake_those_that_want_work(const job_pool& pool) noexcept;

// In a trace: the calling thread sleeps until the job is done.
struct asleep_span {
  explicit asleep_span(job& wanted) noexcept : awaited(wanted) {
    trace_job(observe::event::asleep_begin, awaited);
  }
  ~asleep_span() { trace_job(observe::event::asleep_end, awaited); }
  job& awaited;
};

// A thread that sleeps until the job with this waiter is done.
struct sleeper : waiter {
  explicit sleeper(waiting_thread& sleeping) noexcept : waiter(&wake_up), thread(sleeping) {}
  static void wake_up(waiter& base) noexcept {
    auto& self = static_cast<sleeper&>(base);
    waiting_thread& sleeps = self.thread;
    // order: release  the waker's last touch of this object
    self.woken.store(true, std::memory_order_release);
    sleeps.parker.notify();
  }
  waiting_thread& thread;
  std::atomic<bool> woken{false};
};

// Sleeps until the job, which another thread runs, is done. Throws deadlock.
void wait_until_done(job& awaited);

// For the search for cycles of actors and threads.
extern const tasks::job_waits waits_of_threads;

// Adds the waiter. False when the job is done already.
bool attach(job& job, waiter& observer) noexcept;
// The job is done: notifies all its waiters. The caller has a ref.
void finish(job& job) noexcept;

}  // namespace troupe::jobs
