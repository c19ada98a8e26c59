// waiting: the threads that wait for jobs and forks, and who waits for whom.
//
// Whatever lies on a thread's stack needs what lies above it, and all of it needs what the thread
// waits for. A job is run by one thread; a tree of forks needs each thread that has one of its fork
// frames on its stack. So the way from a wait over threads to their waits is exact, and one that
// comes back is a deadlock. It is looked for by the last one that begins to wait, under one mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "actor/waits/deadlocks.hpp"
#include "base/parker.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/job.hpp"
#include "troupe/jobs/shared_loop.hpp"

namespace troupe::jobs {

class job_pool;
struct fork_tree;
struct waiting_thread;

// A job that runs on this thread, or fork frames of a tree; on its stack, while it does.
class frame {
 public:
  TROUPE_INLINE explicit frame(job& runs) noexcept;
  explicit frame(fork_tree& works_at) noexcept;
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  TROUPE_INLINE ~frame();

  const job* const runs;  // or null:
  fork_tree* const forks;
  const frame* const below;
  const frame* const forks_below;  // the next one that has forks, from here on: this one, too
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

// Never freed, but used again by another thread: whoever looks for a deadlock may look at one whose
// job has just ended.
struct waiting_thread {
  base::parker parker;
  std::atomic<bool> refused{false};  // what it waits for waits for it; `chain` says how

  // Under the mutex.
  struct place {
    const job* one = nullptr;                  // it waits for this,
    const fork_tree* all = nullptr;            // or for all fork frames of this
    const std::atomic<bool>* ended = nullptr;  // of the tree
    const frame* top = nullptr;                // of its stack, which stays as it is
    bool may_refuse = false;
    std::uint32_t seen_in = 0;  // the last search for circles of actors and threads that came here
  } at;
  std::string chain;
  waiting_thread* older = nullptr;  // of those that wait
  waiting_thread* newer = nullptr;
  std::uint64_t reached_in = 0;  // the last search that came here, from there
  waiting_thread* reached_from = nullptr;
  waiting_thread* next_reached = nullptr;
  waiting_thread* next_free = nullptr;
};

// The calling thread's. The first call of a thread throws std::bad_alloc: so it comes before what
// cannot be undone.
TROUPE_NOINLINE waiting_thread& make_this_thread();
inline waiting_thread& this_thread() {
  return this_stack.thread != nullptr ? *this_stack.thread : make_this_thread();
}

// The calling thread waits for what other ones do, until the end of this.
class waits_for {
 public:
  // Sleeps until the job is done. Throws deadlock when that would come back to it.
  explicit waits_for(const job& of);
  // Joins a thread that is to run it.
  struct joins {};
  waits_for(const job& of, joins) noexcept;
  // Sleeps until the tree has ended. Who waits for a job in a circle with it is refused that.
  waits_for(const fork_tree& of, const std::atomic<bool>& ended) noexcept;
  waits_for(const waits_for&) = delete;
  waits_for& operator=(const waits_for&) = delete;
  ~waits_for();

 private:
  waiting_thread& self_;
};

// Whoever sleeps until a tree of this pool has ended, and would rather take part, looks for a part.
void wake_those_that_want_work(const job_pool& of) noexcept;

// Sleeps until the job is done, which another thread runs. Throws deadlock.
void wait_until_done(job& of);

// The same of a thread that has no job and no fork frame on its stack: it helps meanwhile.
void wait_and_help(job& of, job_pool& pool);

// For who looks for circles of actors and threads.
extern const actor::job_waits waits_of_threads;

// Adds the waiter. False when the job is done already.
bool attach(job& of, waiter& one) noexcept;
// The job is done: tells all who wait. The caller has a ref.
void finish(job& of) noexcept;

}  // namespace troupe::jobs
