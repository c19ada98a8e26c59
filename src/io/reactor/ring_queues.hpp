// ring_queues: the two queues of an io_uring. What is to be submitted is collected, and goes with
// the next look or wait.
//
// Threads: add() and wake() are anybody's; look, wait and take_all are for who is inside the
// poller's door. Invariants
//   U1  what is added is submitted: by the next look or wait, or, when somebody sleeps inside, at
//   once; should the system
//       have no memory for it just now, by who added it, as soon as it has.
//   U3  a bell that was taken out of the ring since the last wait ends the next one: whoever rang
//   it must be heard.
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "io/reactor/kernel.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {

class ring_queues {
 public:
  // Marks of completions that are no operation's. Those have greater ones.
  enum : std::uint64_t { bell = 0, unheard = 1 };

  // Throws io_error where the system refuses a ring, or has one without what is needed here.
  ring_queues(kernel& calls, unsigned submissions, unsigned completions)
      : calls_(calls), scripted_(calls.scripts_rings()) {
    io_uring_params wanted{};
    wanted.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    wanted.cq_entries = completions;
    const int made = calls.make_ring(submissions, &ring_, &wanted);
    if (made < 0) throw io_error("io_uring_setup", "", -made);
    if ((wanted.features & features_needed) == features_needed) return;
    io_uring_queue_exit(&ring_);
    throw io_error("io_uring_setup", "", ENOSYS);
  }
  ~ring_queues() { io_uring_queue_exit(&ring_); }
  ring_queues(const ring_queues&) = delete;
  ring_queues& operator=(const ring_queues&) = delete;

  io_uring& ring() noexcept { return ring_; }
  bool knows(int operation) noexcept {
    io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
    if (probe == nullptr) return false;
    const bool yes = io_uring_opcode_supported(probe, operation) != 0;
    io_uring_free_probe(probe);
    return yes;
  }

  // prepare(io_uring_sqe&) fills the entry in; its completion will bear `mark`.
  template <class Prepare>
  void add(std::uint64_t mark, Prepare prepare) noexcept {
    std::unique_lock lock(submissions_);
    fill(lock, mark, prepare);
    if (somebody_sleeps_) give(lock);  // U1
  }
  // The same, and the system has it when this returns.
  template <class Prepare>
  void submit(std::uint64_t mark, Prepare prepare) noexcept {
    std::unique_lock lock(submissions_);
    fill(lock, mark, prepare);
    give(lock);
  }
  void wake() noexcept {
    submit(bell, [](io_uring_sqe& entry) { io_uring_prep_nop(&entry); });
  }

  // Whether something has come that take_all() is to be called for.
  bool look() noexcept {
    hand_over(false);
    return something_came();
  }

  // The same, but sleeps until something comes, the limit is over (null: none), or wake() was
  // called.
  bool wait(const std::chrono::nanoseconds* limit) noexcept {
    const unsigned count = hand_over(true);
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
    somebody_sleeps_ = false;
    const bool came = something_came();
    rung_ = false;
    return came;
  }

  // take(mark, result, flags) of the completions that are there now: 256 at most, so that what
  // these hold, buffers above all, is used before more of it is taken. The next look finds the
  // others.
  template <class Take>
  void take_all(Take take) noexcept {
    unsigned count = std::min(io_uring_cq_ready(&ring_), 256u);
    // Who added these operations left the mutex before: from here on all that they hold is seen.
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

  // Under the mutex of submissions. A full queue is emptied first.
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

  // Makes what was pushed visible to the system, as io_uring_submit() does: how many it has not
  // taken yet.
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

  // Until the system has all there is: it may take a part, or have no memory just now, or first
  // want completions to be taken away, for which others need the mutex.
  void give(std::unique_lock<std::mutex>& lock) noexcept {
    while (const unsigned count = publish()) {
      const int given = enter(count, 0);
      if (given >= 0 || given == -EINTR) continue;
      // the ring is no more
      if (given != -EAGAIN && given != -EBUSY && given != -ENOMEM && given != -ENOBUFS) return;
      lock.unlock();
      // sleeps: nobody tells when the system has memory again
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      lock.lock();
    }
  }

  // How many are visible and not yet taken; those of a look are taken here.
  unsigned hand_over(bool sleeps) noexcept {
    unsigned count = 0;
    {
      std::lock_guard lock(submissions_);
      somebody_sleeps_ = sleeps;
      count = publish();
    }
    // What did not fit into the ring of completions comes when the system is asked for events.
    const bool overflowed =
        (io_uring_smp_load_acquire(ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) != 0;
    if (overflowed || (!sleeps && count != 0)) {
      enter(count, overflowed ? IORING_ENTER_GETEVENTS : 0);
      count = 0;
    }
    return count;
  }

  // Drops bells in front, and remembers that.
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
  bool rung_ = false;  // inside the door: U3
};

}  // namespace troupe::io
