// memory_account: the bytes of one runtime's resources, and the lazies that wait until some of
// these are freed.
//
// While memory is short a runner sets a job that needs memory aside. The job is taken up again when
// enough was freed, or at any time by a thread that needs it. No thread waits for memory: a job
// that is set aside costs parallelism only.
// Invariants
//   A1  a job that is set aside has a ref of the list's, and `kept_by` is the account.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "jobs/pool/memory_gate.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

class job_pool;

class memory_account {
 public:
  // `call_runner`: called when enough was freed, while the pool exists.
  memory_account(job_pool& owner, void (*call_runner)(job_pool& pool) noexcept,
                 std::size_t limit) noexcept
      : gate_(limit), pool_(&owner), call_runner_(call_runner) {}

  // order: relaxed  the caller has a ref
  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() noexcept {
    // order: acq_rel  the holder of the last ref sees the others' writes
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  void charge(std::size_t bytes) noexcept;
  void discharge(std::size_t bytes) noexcept;
  // The runtime ends: no runners are called any longer.
  void close() noexcept;

  bool is_short() const noexcept { return gate_.is_short(); }
  bool has_limit() const noexcept { return gate_.has_limit(); }
  // Whether jobs were set aside that may be taken up now.
  bool some_may_go_on() const noexcept { return gate_.some_aside() && !gate_.is_short(); }
  // Takes the ref, unless it returns false: then another thread has claimed the job, and may not
  // have seen it here.
  bool set_aside(job& job) noexcept;
  job* take_up() noexcept;              // the oldest job, with its ref; or null
  bool take_out(job& wanted) noexcept;  // true when the job was here; its ref is the caller's then
  std::size_t aside() const noexcept { return gate_.aside(); }
  std::size_t used() const noexcept { return gate_.used(); }
  // order: relaxed  a statistic
  std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  void unlink(job& job) noexcept;

  memory_gate<> gate_;  // counts the jobs in the list
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint32_t> refs_{1};
  std::mutex mutex_;
  job_pool* pool_;  // null once the runtime ends; guarded by the mutex
  void (*const call_runner_)(job_pool& pool) noexcept;
  base::intrusive_list<job, &job::link> aside_;  // the oldest first
};

}  // namespace troupe::jobs
