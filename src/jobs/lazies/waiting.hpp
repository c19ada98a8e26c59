// waiting: the threads that wait for jobs and forks, and which of them waits for which.
//
// Everything on a thread's stack needs what lies above it, and all of it needs what the thread
// waits for. One thread runs a job; a tree of forks needs each thread that has one of its fork
// frames on its stack. So a path from a wait over threads to their waits is exact, and a path that
// comes back is a deadlock. The last thread of a circle that begins to wait searches for it, under
// one mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/parker.hpp"
#include "task/running/job_waits.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/job.hpp"
#include "troupe/jobs/shared_loop.hpp"

namespace troupe::jobs {

class job_pool;
struct fork_tree;
struct waiting_thread;

// A job that this thread is running, or fork frames of a tree. Lies on the thread's stack as long
// as they do.
class frame {
 public:
  TROUPE_INLINE explicit frame(job& runs) noexcept;
  explicit frame(fork_tree& works_at) noexcept;
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  TROUPE_INLINE ~frame();

  const job* const runs;  // null: then `forks` is set
  fork_tree* const forks;
  const frame* const below;
  const frame* const forks_below;  // the next frame with forks, starting at this one
};

TROUPE_INLINE frame::frame(job& one) noexcept
    : runs(&one),
      forks(nullptr),
      below(this_stack.top),
      forks_below(below == nullptr ? nullptr : below->forks_below) {
  this_stack.top = this;
}
inline frame::frame(fork_tree& works_at) noexcept
    : runs(nullptr), forks(&works_at), below(this_stack.top), forks_below(this) {
  this_stack.top = this;
}
TROUPE_INLINE frame::~frame() { this_stack.top = below; }

// Never freed, but used again by another thread: a search for a deadlock may look at a thread whose
// job has just ended.
struct waiting_thread {
  base::parker parker;
  // what the thread waits for waits for it; `chain` names the circle
  std::atomic<bool> refused{false};

  // Guarded by the mutex.
  struct place {
    const job* one = nullptr;                  // the job that it waits for
    const fork_tree* all = nullptr;            // or the tree whose fork frames it waits for
    const std::atomic<bool>* ended = nullptr;  // the tree's flag
    const frame* top = nullptr;                // of its stack, which does not change while it waits
    bool may_refuse = false;
    // the last search for circles of actors and threads that saw this wait
    std::uint32_t seen_in = 0;
  } at;
  std::string chain;
  base::list_link<waiting_thread> link;  // of the waiting threads
  std::uint64_t reached_in = 0;  // the last search that reached this thread, and from which thread
  waiting_thread* reached_from = nullptr;
  waiting_thread* next_reached = nullptr;
  waiting_thread* next_free = nullptr;
};
using waiting_thread_list = base::intrusive_list<waiting_thread, &waiting_thread::link>;

// The calling thread's entry. A thread's first call may throw std::bad_alloc: so call it before
// anything that cannot be undone.
TROUPE_NOINLINE waiting_thread& make_this_thread();
inline waiting_thread& this_thread() {
  return this_stack.thread != nullptr ? *this_stack.thread : make_this_thread();
}

// While this lives the calling thread is listed as waiting for what other threads do.
class waits_for {
 public:
  // For a thread that sleeps until the job is done. Throws deadlock when it would wait for itself.
  explicit waits_for(const job& of);
  // For a thread that joins the thread that runs the job.
  struct joins {};
  waits_for(const job& of, joins) noexcept;
  // For a thread that sleeps until the tree has ended. In a circle with this wait another thread's
  // wait for a job is refused.
  waits_for(const fork_tree& of, const std::atomic<bool>& ended) noexcept;
  waits_for(const waits_for&) = delete;
  waits_for& operator=(const waits_for&) = delete;
  ~waits_for();

 private:
  waiting_thread& self_;
};

// Wakes each thread that sleeps until a tree of this pool has ended and wants to take part, so that
// it looks for a part.
void wake_those_that_want_work(const job_pool& of) noexcept;

// Sleeps until the job, which another thread runs, is done. Throws deadlock.
void wait_until_done(job& of);

// The same for a thread that has no job and no fork frame on its stack: it helps meanwhile.
void wait_and_help(job& of, job_pool& pool);

// For the search for circles of actors and threads.
extern const tasks::job_waits waits_of_threads;

// Adds the waiter. False when the job is done already.
bool attach(job& of, waiter& one) noexcept;
// The job is done: tells all its waiters. The caller has a ref.
void finish(job& of) noexcept;

}  // namespace troupe::jobs
