// ring_queues: the two queues of an io_uring. Entries to submit are collected, and are submitted
// with the next look or wait.
//
// Threads: any thread may call add(), submit() and wake(). Only the thread inside the poller's door
// may call poll(), wait() and take_some().
// Invariants
//   U1  an entry that was added is submitted: by the next look or wait, or, while a thread sleeps
//       in wait(), at once. If the system has no memory for it, the thread that added it submits it
//       as soon as there is memory.
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/invariant.hpp"
#include "io/kernel/kernel.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {

class ring_queues {
 public:
  // Marks of completions that belong to no operation. The marks of operations are greater.
  enum : std::uint64_t { bell = 0, unheard = 1 };

  // Throws io_error when the system refuses a ring, or its ring lacks a feature that is needed
  // here.
  ring_queues(kernel& calls, unsigned submissions, unsigned completions)
      : calls_(calls), scripted_(calls.scripts_rings()) {
    io_uring_params wanted{};
    wanted.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    wanted.cq_entries = completions;
    const int result = calls.make_ring(submissions, &ring_, &wanted);
    if (result < 0) throw io_error("io_uring_setup", "", -result);
    if ((wanted.features & features_needed) == features_needed) return;
    io_uring_queue_exit(&ring_);
    throw io_error("io_uring_setup", "", ENOSYS);
  }
  ~ring_queues() { io_uring_queue_exit(&ring_); }
  ring_queues(const ring_queues&) = delete;
  ring_queues& operator=(const ring_queues&) = delete;

  io_uring& ring() noexcept { return ring_; }

  // prepare(io_uring_sqe&) fills the entry in; its completion will carry `mark`.
  template <class Prepare>
  void add(std::uint64_t mark, Prepare prepare) noexcept {
    std::unique_lock lock(submissions_);
    fill(lock, mark, prepare);
    if (somebody_sleeps_) give(lock);  // U1
  }
  // The same, and the system has the entry when this returns.
  template <class Prepare>
  void submit(std::uint64_t mark, Prepare prepare) noexcept {
    std::unique_lock lock(submissions_);
    fill(lock, mark, prepare);
    give(lock);
  }
  void wake() noexcept {
    submit(bell, [](io_uring_sqe& entry) { io_uring_prep_nop(&entry); });
  }

  // True when there are completions, for which take_some() is to be called.
  bool poll() noexcept {
    submit_published(false);
    return something_came();
  }

  // The same, but sleeps until a completion comes, the limit is over (null: no limit), or wake() is
  // called.
  bool wait(const std::chrono::nanoseconds* limit) noexcept {
    const unsigned count = submit_published(true);
    if (!something_came() && !rung_) {
      __kernel_timespec span{};
      io_uring_getevents_arg arg{};
      if (limit != nullptr) {
        span.tv_sec = limit->count() / 1'000'000'000;
        span.tv_nsec = limit->count() % 1'000'000'000;
        arg.ts = reinterpret_cast<std::uint64_t>(&span);
      }
      calls_.enter_ring(ring_.ring_fd, count, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                        &arg, sizeof arg);
    } else if (count != 0) {
      enter(count, 0);
    }
    std::lock_guard lock(submissions_);
    TROUPE_INVARIANT(ring_.sq.sqe_head == ring_.sq.sqe_tail, "U1");
    somebody_sleeps_ = false;
    const bool came = something_came();
    rung_ = false;
    return came;
  }

  // Calls take(mark, result, flags) for the completions that are there now, at most `most`, so that
  // their contents, above all buffers, are used before more is taken. The next look finds the
  // others.
  template <class Take>
  void take_some(unsigned most, Take take) noexcept {
    unsigned count = std::min(io_uring_cq_ready(&ring_), most);
    // The threads that added these operations have released the mutex since. Taking it here makes
    // everything that the operations hold visible.
    { const std::lock_guard seen(submissions_); }
    while (count-- != 0) {
      io_uring_cqe* entry = nullptr;
      if (io_uring_peek_cqe(&ring_, &entry) != 0) break;
      const std::uint64_t mark = entry->user_data;
      const int result = scripted_ ? calls_.came_to(mark, entry->res) : entry->res;
      const unsigned flags = entry->flags;
      io_uring_cqe_seen(&ring_, entry);
      if (mark == bell) rung_ = true;
      if (mark > unheard) take(mark, result, flags);
    }
  }

 private:
  static constexpr unsigned features_needed =
      IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_SUBMIT_STABLE;

  // The caller holds `submissions_`. A full queue is submitted first.
  template <class Prepare>
  void fill(std::unique_lock<std::mutex>& lock, std::uint64_t mark, Prepare& prepare) noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      give(lock);
      entry = io_uring_get_sqe(&ring_);
    }
    prepare(*entry);
    entry->user_data = mark;
    if (scripted_) calls_.asked(*entry);
  }

  // Makes the added entries visible to the system, as io_uring_submit() does. Returns how many
  // entries the system has not taken yet.
  unsigned publish() noexcept {
    io_uring_sq& queue = ring_.sq;
    const unsigned mask = *queue.kring_mask;
    unsigned tail = *queue.ktail;
    for (; queue.sqe_head != queue.sqe_tail; ++queue.sqe_head, ++tail)
      queue.array[tail & mask] = queue.sqe_head & mask;
    io_uring_smp_store_release(queue.ktail, tail);
    return tail - io_uring_smp_load_acquire(queue.khead);
  }

  int enter(unsigned count, unsigned flags) noexcept {
    return calls_.enter_ring(ring_.ring_fd, count, 0, flags, nullptr, 0);
  }

  // Submits until the system has taken all entries. The system may take only a part, or lack memory
  // at the moment, or first need completions to be taken away. For that other threads need the
  // mutex.
  void give(std::unique_lock<std::mutex>& lock) noexcept {
    while (const unsigned count = publish()) {
      const int given = enter(count, 0);
      if (given >= 0 || given == -EINTR) continue;
      // The ring no longer exists.
      if (given != -EAGAIN && given != -EBUSY && given != -ENOMEM && given != -ENOBUFS) return;
      lock.unlock();
      // sleeps: the system does not report when it has memory again
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      lock.lock();
    }
  }

  // Returns how many entries are visible and not yet taken. A look submits them here.
  unsigned submit_published(bool sleeps) noexcept {
    unsigned count = 0;
    {
      std::lock_guard lock(submissions_);
      somebody_sleeps_ = sleeps;
      count = publish();
    }
    // Completions that did not fit into their ring appear when the system is asked for events.
    const bool overflowed =
        (io_uring_smp_load_acquire(ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) != 0;
    if (overflowed || (!sleeps && count != 0)) {
      enter(count, overflowed ? IORING_ENTER_GETEVENTS : 0);
      count = 0;
    }
    return count;
  }

  // Drops bells at the front of the ring, and remembers that there were some.
  bool something_came() noexcept {
    io_uring_cqe* entry = nullptr;
    while (io_uring_cq_ready(&ring_) != 0 && io_uring_peek_cqe(&ring_, &entry) == 0) {
      if (entry->user_data > unheard) return true;
      if (entry->user_data == bell) rung_ = true;
      io_uring_cqe_seen(&ring_, entry);
    }
    return false;
  }

  kernel& calls_;
  const bool scripted_;
  io_uring ring_{};
  std::mutex submissions_;
  bool somebody_sleeps_ = false;
  // Used inside the door: a bell was taken out of the ring since the last wait. It ends the next
  // wait, so that no call of wake() is lost.
  bool rung_ = false;
};

}  // namespace troupe::io
