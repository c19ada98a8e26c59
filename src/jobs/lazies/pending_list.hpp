// pending_list: the jobs that one thread has made and not submitted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "jobs/lazies/job_refs.hpp"
#include "jobs/pool/job_pool.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

// By age. Its thread's own.
struct pending_list {
  void append(job& one) noexcept {
    one.position = ++made;
    put_behind(newest, one);
  }
  // As the oldest of all when that is null.
  void put_behind(job* behind, job& one) noexcept {
    one.older = behind;
    one.newer = behind == nullptr ? oldest : behind->newer;
    (one.older == nullptr ? oldest : one.older->newer) = &one;
    (one.newer == nullptr ? newest : one.newer->older) = &one;
    // order: relaxed  only this thread compares it with itself
    one.kept_by.store(this, std::memory_order_relaxed);
  }
  // order: relaxed  as above
  bool has(const job& one) const noexcept {
    return one.kept_by.load(std::memory_order_relaxed) == this;
  }
  void remove(job& one) noexcept {
    ++removed;
    (one.older == nullptr ? oldest : one.older->newer) = one.newer;
    (one.newer == nullptr ? newest : one.newer->older) = one.older;
    one.kept_by.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as above
  }
  // Those that are younger go unrun; the pool counts those that nobody will want.
  void drop(std::uint64_t than, job_pool* pool) noexcept {
    while (newest != nullptr && newest->position > than) {
      job& one = *newest;
      remove(one);
      if (is_orphan(one)) count_unrun(one, pool);
      one.drop_kept();
    }
  }
  // One that has lost its last handle. What it holds may be the last handle of others, and they of
  // others again: one after the other, or the stack would end before a long chain does.
  void drop_orphan(job& one) noexcept {
    remove(one);
    one.older = std::exchange(orphans, &one);
    if (dropping) return;
    dropping = true;
    while (orphans != nullptr) {
      job& next = *std::exchange(orphans, orphans->older);
      count_unrun(next, job_pool::current());  // each time: what goes may be a runtime
      next.drop_kept();
    }
    dropping = false;
  }

  // Nobody but where it is kept.
  static bool is_orphan(job& one) noexcept {
    return job_refs<std::atomic<std::uint32_t>>(one.refs).is_orphan();
  }
  static void count_unrun(const job& one, job_pool* pool) noexcept {
    // order: relaxed  somebody had it, and has run it
    if (pool != nullptr && !one.claimed.load(std::memory_order_relaxed)) pool->count_dropped();
  }

  job* oldest = nullptr;
  job* newest = nullptr;
  job* orphans = nullptr;  // out of the list, and to go
  bool dropping = false;
  std::uint64_t made = 0;
  std::uint64_t sweep_at = 0;  // so many made: then those that are over go
  std::uint64_t removed = 0;
  const pending_scope* scope = nullptr;  // the innermost of this thread
  const std::byte* stack_top = nullptr;  // where the outermost job of this thread began
  bool inside_handler = false;           // a fork runs in it (serial_lazies)
};

}  // namespace troupe::jobs
