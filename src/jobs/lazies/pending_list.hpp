// pending_list: the jobs that one thread has made and not submitted yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jobs/lazies/job_refs.hpp"
#include "jobs/pool/job_pool.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// Sorted by age. Only its own thread uses it.
struct pending_list {
  void append(job& job) noexcept {
    job.position = ++jobs_made;
    jobs.push_back(job);
    // order: relaxed  only this thread compares it with itself
    job.kept_by.store(this, std::memory_order_relaxed);
  }
  // Puts the job right after `behind`, or in the oldest position when that is null.
  void put_behind(job* behind, job& job) noexcept {
    jobs.insert_after(behind, job);
    job.kept_by.store(this, std::memory_order_relaxed);  // order: relaxed  as above
  }
  // order: relaxed  as above
  bool has(const job& job) const noexcept {
    return job.kept_by.load(std::memory_order_relaxed) == this;
  }
  void remove(job& job) noexcept {
    ++removed;
    jobs.remove(job);
    job.kept_by.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as above
  }
  // Drops all jobs made after number `than`, without running them. The pool counts those that no
  // thread can need any more.
  void drop(std::uint64_t than, job_pool* pool) noexcept {
    while (job* const newest = jobs.last()) {
      job& job = *newest;
      if (job.position <= than) return;
      remove(job);
      if (is_orphan(job)) count_unrun(job, pool);
      job.drop_kept();
    }
  }
  // Drops a job that has lost its last handle. It may hold the last handle of other jobs, and these
  // of others again: dropped in a loop, since recursion would exhaust the stack on a long chain.
  void drop_orphan(job& item) noexcept {
    remove(item);
    orphans.push_front(item);
    if (dropping) return;
    dropping = true;
    while (job* const next = orphans.pop_front()) {
      // asked each time: the destroyed object may be a runtime
      count_unrun(*next, job_pool::current());
      next->drop_kept();
    }
    dropping = false;
  }

  // No handle is left: only this list keeps the job.
  static bool is_orphan(job& job) noexcept {
    return job_refs<std::atomic<std::uint32_t>>(job.refs).is_orphan();
  }
  static void count_unrun(const job& job, job_pool* pool) noexcept {
    // order: relaxed  if it is claimed, a thread with a handle has run it
    if (pool != nullptr && !job.claimed.load(std::memory_order_relaxed)) pool->count_dropped();
  }

  using list = base::intrusive_list<job, &job::link>;
  list jobs;     // the oldest first
  list orphans;  // taken out of `jobs`, to be dropped
  bool dropping = false;
  bool inside_handler = false;  // a fork runs in a handler (serial_lazies)
  std::uint32_t removed = 0;    // wraps; only differences matter
  std::uint64_t jobs_made = 0;
  std::uint64_t sweep_at = 0;  // when `jobs_made` reaches this, sweep_pending drops finished jobs
  const pending_scope* scope = nullptr;  // this thread's innermost
  const std::byte* stack_top = nullptr;  // where this thread's outermost job began; null: none
};

}  // namespace troupe::jobs
