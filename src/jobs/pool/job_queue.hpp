// job_queue: the jobs that one thread has submitted, until some thread takes them; and the parts of
// its forks, which have deques of their own.
//
// The owner works at the new end; thieves take the oldest. A ring that doubles when it is full; a
// job that is taken out of the middle leaves a hole. Guarded by a biased lock, which is the
// owner's; it lets one thief in.
// Invariants
//   J1  a job in the ring has a ref of the ring's; its `position` is its index there, and its
//       `kept_by` is the queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "jobs/pool/part_request.hpp"
#include "sched/biased_lock.hpp"
#include "troupe/jobs/fork_frame.hpp"
#include "troupe/jobs/job.hpp"

namespace troupe::jobs {

struct request_atomics : base::std_atomics {
  struct patience : base::std_atomics::patience {
    patience() noexcept : base::std_atomics::patience(for_forks_ns) {}
  };
};

class job_queue {
 public:
  // Owner. False when memory is out.
  bool push(job& job) noexcept {
    lock.enter();
    const bool room = end_() - begin_() <= mask_ || grow();
    if (room) {
      job.position = end_();
      // order: relaxed  only the owner compares it with itself
      job.kept_by.store(this, std::memory_order_relaxed);
      slots_[end_() & mask_] = &job;
      set(ends_, end_() + 1);
    }
    lock.leave();
    return room;
  }

  // Owner: takes the newest job, or returns null. The caller gets its ref.
  job* pop() noexcept {
    lock.enter();
    job* item = nullptr;
    while (item == nullptr && end_() != begin_()) {
      set(ends_, end_() - 1);
      item = slots_[end_() & mask_];
    }
    lock.leave();
    return let_go(item);
  }

  // Owner: takes this job out, if it is still in the queue.
  bool remove(job& job) noexcept {
    lock.enter();
    const std::size_t at = job.position;
    const bool there = at - begin_() < end_() - begin_() && slots_[at & mask_] == &job;
    if (there && at + 1 == end_()) {
      set(ends_, at);
    } else if (there) {
      slots_[at & mask_] = nullptr;
    }
    lock.leave();
    if (there) let_go(&job);
    return there;
  }

  // Thief: takes the oldest job, or returns null.
  job* steal() noexcept {
    if (empty() || !enter_as_thief()) return nullptr;
    job* item = nullptr;
    while (item == nullptr && begin_() != end_()) {
      item = slots_[begin_() & mask_];
      set(begins_, begin_() + 1);
    }
    lock.restore();
    return let_go(item);
  }

  // The same: takes the oldest job from this index on.
  job* steal_from(std::uint64_t first) noexcept {
    if (end_() <= first || !enter_as_thief()) return nullptr;
    job* item = nullptr;
    for (std::size_t at = std::max<std::size_t>(begin_(), first); item == nullptr && at < end_();
         ++at) {
      item = std::exchange(slots_[at & mask_], nullptr);
    }
    lock.restore();
    return let_go(item);
  }

  // Thief: asks the owner for a part (part_request). False while other thieves ask.
  bool ask_for_part(const fork_tree* within) noexcept {
    for (base::std_atomics::patience left; !request.ask(within);) {
      if (left.is_over()) return false;
    }
    return true;
  }

  // Owner: the next job that it pushes gets this index.
  std::uint64_t mark() const noexcept { return end_(); }

  // Hints outside of the lock.
  bool empty() const noexcept { return begin_() == end_(); }
  std::size_t count() const noexcept {
    const std::size_t begin = begin_(), end = end_();
    return end > begin ? end - begin : 0;
  }

  std::thread::id owner{};  // none: any thread may become the owner; guarded by the pool's mutex
  fork_deques parts;        // of the forks and loops that the owner has begun
  // by thieves, for a part of a fork
  part_request<fork_frame, fork_tree, request_atomics> request;
  // When thieves found that the owner does not answer; 0: it does. A hint, which thieves write.
  std::atomic<std::int64_t> silent_since_ns{0};
  // The pool's queues, the newest first: written before the queue is published, and never again.
  job_queue* older = nullptr;
  job_queue* last_victim = nullptr;  // owner: the queue at which its last search ended
  // jobs pushed since the owner's outermost job began have this index or a later one
  std::atomic<std::uint64_t> runs_from{0};
  // A thread that waits for the owner's job, and would help if something were queued; a hint.
  std::atomic<waiting_thread*> wants_work{nullptr};
  std::atomic<bool> busy{false};   // the owner is at work here; the owner writes it
  std::int64_t offered_at_ns = 0;  // owner: when it last asked other threads to take part

 private:
  job* let_go(job* job) noexcept {
    // order: relaxed  its taker's
    TROUPE_INVARIANT(job == nullptr || job->kept_by.load(std::memory_order_relaxed) == this, "J1");
    // order: relaxed  only compared
    if (job != nullptr) job->kept_by.store(nullptr, std::memory_order_relaxed);
    return job;
  }

  // Waits for another thief, which needs less time for its theft than this one for a search.
  bool enter_as_thief() noexcept {
    for (base::std_atomics::patience left;;) {
      if (lock.try_revoke()) return true;
      if (!lock.is_revoked() || left.is_over()) return false;
    }
  }

  // order: relaxed (all)  a hint for those outside of the lock
  std::size_t begin_() const noexcept { return begins_.load(std::memory_order_relaxed); }
  std::size_t end_() const noexcept { return ends_.load(std::memory_order_relaxed); }
  static void set(std::atomic<std::size_t>& count, std::size_t to) noexcept {
    count.store(to, std::memory_order_relaxed);
  }

  bool grow() noexcept {
    const std::size_t room = 2 * (mask_ + 1);
    auto* larger = new (std::nothrow) job*[room];
    if (larger == nullptr) return false;
    for (std::size_t at = begin_(); at != end_(); ++at)
      larger[at & (room - 1)] = slots_[at & mask_];
    slots_.reset(larger);
    mask_ = room - 1;
    return true;
  }

  sched::biased_lock<> lock;
  std::atomic<std::size_t> begins_{0}, ends_{0};  // never wrap
  std::size_t mask_ = 255;
  std::unique_ptr<job*[]> slots_ = std::make_unique<job*[]>(mask_ + 1);
};

}  // namespace troupe::jobs
