// The backend over io_uring. One ring; what is to be submitted is collected, and goes with the next look or wait.
//
// Transfers over sockets, accept and connect are the ring's own operations. All else waits in the ring until it is ready
// and is then tried (attempt.hpp). One operation of a slot and direction is in the ring at a time; the others queue.
// Invariants
//   U1  what is pushed is submitted: by the next look or wait, or, when somebody sleeps inside, at once.
//   U2  the first of a slot's queue is in the ring, and no other; only its completion, or abandon(), moves the queue.
//   U3  a bell that was taken out of the ring since the last wait ends the next one: whoever rang it must be heard.
#include "io/make_reactor.hpp"

#if TROUPE_HAS_LIBURING

#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "io/attempt.hpp"
#include "io/buffer_ring.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {
namespace {

unsigned submission_entries = 256, completion_entries = 4096, buffer_entries = 256;

// Marks of completions that are no operation's.
enum : std::uint64_t { bell = 0, cancellation = 1 };

constexpr unsigned features_needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_SUBMIT_STABLE;

class uring_reactor final : public reactor {
 public:
  uring_reactor(kernel& calls, runtime_services of) : reactor(calls, std::move(of), std::make_shared<buffer_ring>(buffer_entries)) {
    io_uring_params wanted{};
    wanted.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    wanted.cq_entries = completion_entries;
    const int made = io_uring_queue_init_params(submission_entries, &ring_, &wanted);
    if (made < 0) throw io_error("io_uring_setup", "", -made);
    if ((wanted.features & features_needed) != features_needed) {
      io_uring_queue_exit(&ring_);
      throw io_error("io_uring_setup", "", ENOSYS);
    }
    provides_ = leases().open(ring_);
  }
  ~uring_reactor() override { io_uring_queue_exit(&ring_); }

  bool start(operation& one) noexcept override {
    slot& at = *one.at;
    if (is_of_file(one.what) && try_file(one)) return true;
    std::lock_guard lock(at.mutex);
    operation_queue& queue = queue_of(one);
    const bool first = queue.empty();
    if (first && one.what == action::send_file && attempt(calls, at, one)) return true;
    one.pending = true;
    enter(one);
    queue.push(one);
    if (first) push(one);
    return false;
  }

  // The system is asked here and now, while the operation cannot complete: so none that has its address later is meant.
  void cancel(operation& one) noexcept override {
    {
      std::lock_guard lock(one.at->mutex);
      if (!one.pending || (one.aside && one.begun)) return;
      if (queue_of(one).front() == &one && !one.aside) return ask_for_end(one);
      queue_of(one).remove(one);
      one.pending = false;
      one.result = -ECANCELED;
    }
    complete(one);
  }

  bool look() noexcept override {
    submit(false);
    return something_came();
  }

  bool wait(const std::chrono::nanoseconds* limit) noexcept override {
    const unsigned count = submit(true);
    if (!something_came() && !rung_) {
      __kernel_timespec span{};
      io_uring_getevents_arg arg{};
      if (limit != nullptr) {
        span.tv_sec = limit->count() / 1'000'000'000;
        span.tv_nsec = limit->count() % 1'000'000'000;
        arg.ts = reinterpret_cast<std::uint64_t>(&span);
      }
      io_uring_enter2(static_cast<unsigned>(ring_.ring_fd), count, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                      reinterpret_cast<sigset_t*>(&arg), sizeof arg);
    } else if (count != 0) {
      give(count, 0);
    }
    std::lock_guard lock(submissions_);
    somebody_sleeps_ = false;
    const bool came = something_came();
    rung_ = false;
    return came;
  }

  void wake() noexcept override {
    std::lock_guard lock(submissions_);
    io_uring_sqe& entry = next_entry();
    io_uring_prep_nop(&entry);
    entry.user_data = bell;
    give(publish(), 0);
  }

  void dispatch() noexcept override {
    unsigned count = io_uring_cq_ready(&ring_);
    // Who pushed these operations left the mutex before: from here on all that they hold is seen.
    { const std::lock_guard seen(submissions_); }
    while (count-- != 0) {
      io_uring_cqe* entry = nullptr;
      if (io_uring_peek_cqe(&ring_, &entry) != 0) break;
      const std::uint64_t whose = entry->user_data;
      const int result = entry->res;
      const unsigned flags = entry->flags;
      io_uring_cqe_seen(&ring_, entry);
      if (whose == bell) rung_ = true;
      if (whose > cancellation) finish(*reinterpret_cast<operation*>(whose), result, flags);
    }
  }

 protected:
  bool abandon(slot& at, operation_queue& ended) noexcept override {
    for (operation_queue* queue : {&at.readers, &at.writers}) {
      operation* const first = queue->front();
      if (first == nullptr) continue;
      ask_for_end(*first);
      while (operation* one = first->next) {
        queue->remove(*one);
        one->pending = false;
        one->result = -ECANCELED;
        ended.push(*one);
      }
      at.closing = true;
    }
    return !at.closing;
  }

 private:
  buffer_ring& leases() const noexcept { return static_cast<buffer_ring&>(*buffers); }
  static operation_queue& queue_of(operation& one) noexcept { return reads(one) ? one.at->readers : one.at->writers; }

  // Under the mutex of submissions. A full queue is emptied first.
  io_uring_sqe& next_entry() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (entry == nullptr) {
      give(publish(), 0);
      entry = io_uring_get_sqe(&ring_);
    }
    return *entry;
  }

  // Makes what was pushed visible to the system, as io_uring_submit() does: how many it has not taken yet.
  unsigned publish() noexcept {
    io_uring_sq& queue = ring_.sq;
    const unsigned mask = *queue.kring_mask;
    unsigned tail = *queue.ktail;
    for (; queue.sqe_head != queue.sqe_tail; ++queue.sqe_head, ++tail) queue.array[tail & mask] = queue.sqe_head & mask;
    io_uring_smp_store_release(queue.ktail, tail);
    return tail - io_uring_smp_load_acquire(queue.khead);
  }

  void give(unsigned count, unsigned flags) noexcept {
    int given = -EINTR;
    while (given == -EINTR) given = io_uring_enter(static_cast<unsigned>(ring_.ring_fd), count, 0, flags, nullptr);
  }

  // How many are visible and not yet taken; those of a look are taken here.
  unsigned submit(bool sleeps) noexcept {
    unsigned count = 0;
    {
      std::lock_guard lock(submissions_);
      somebody_sleeps_ = sleeps;
      count = publish();
    }
    // What did not fit into the ring of completions comes when the system is asked for events.
    const bool overflowed = (io_uring_smp_load_acquire(ring_.sq.kflags) & IORING_SQ_CQ_OVERFLOW) != 0;
    if (overflowed || (!sleeps && count != 0)) {
      give(count, overflowed ? IORING_ENTER_GETEVENTS : 0);
      count = 0;
    }
    return count;
  }

  // Drops bells in front, and remembers that.
  bool something_came() noexcept {
    io_uring_cqe* entry = nullptr;
    while (io_uring_cq_ready(&ring_) != 0 && io_uring_peek_cqe(&ring_, &entry) == 0) {
      if (entry->user_data > cancellation) return true;
      if (entry->user_data == bell) rung_ = true;
      io_uring_cqe_seen(&ring_, entry);
    }
    return false;
  }

  // Under the slot's mutex.
  void push(operation& one) noexcept {
    std::lock_guard lock(submissions_);
    io_uring_sqe& entry = next_entry();
    prepare(entry, one);
    entry.user_data = reinterpret_cast<std::uint64_t>(&one);
    if (somebody_sleeps_) give(publish(), 0);  // U1
  }

  void prepare(io_uring_sqe& entry, operation& one) const noexcept {
    const int fd = one.at->fd;
    const int flags = one.whole ? MSG_WAITALL : 0;
    if (is_of_file(one.what)) {
      prepare_of_file(entry, one);
    } else if (is_polled(one)) {
      io_uring_prep_poll_add(&entry, fd, reads(one) ? POLLIN : POLLOUT);
    } else if (one.what == action::read) {
      if (one.leased) {
        io_uring_prep_recv(&entry, fd, nullptr, 0, 0);
        entry.flags |= IOSQE_BUFFER_SELECT;
        entry.buf_group = buffer_ring::group;
      } else {
        io_uring_prep_recv(&entry, fd, one.data + one.done, one.bytes - one.done, flags);
      }
      if (provides_ && !one.at->can_read) entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    } else if (one.what == action::write) {
      io_uring_prep_send(&entry, fd, one.data + one.done, one.bytes - one.done, flags | MSG_NOSIGNAL);
    } else if (one.what == action::accept) {
      io_uring_prep_accept(&entry, fd, one.address, one.address == nullptr ? nullptr : &one.address_bytes,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    } else {
      io_uring_prep_connect(&entry, fd, one.address, one.address_bytes);
    }
  }

  static void prepare_of_file(io_uring_sqe& entry, operation& one) noexcept {
    const int fd = one.at->fd;
    const auto bytes = static_cast<unsigned>(std::min(one.bytes - one.done, step_bytes_max));
    const auto offset = static_cast<std::uint64_t>(
        one.offset == own_position ? own_position : one.offset + static_cast<std::int64_t>(one.done));
    if (one.what == action::open) {
      io_uring_prep_openat(&entry, fd, reinterpret_cast<const char*>(one.data), one.extra, static_cast<mode_t>(one.bytes));
    } else if (one.what == action::read_at) {
      io_uring_prep_read(&entry, fd, one.data + one.done, bytes, offset);
    } else if (one.what == action::write_at) {
      io_uring_prep_write(&entry, fd, one.data + one.done, bytes, offset);
    } else if (one.what == action::sync) {
      io_uring_prep_fsync(&entry, fd, one.extra != 0 ? IORING_FSYNC_DATASYNC : 0);
    } else {
      io_uring_prep_close(&entry, fd);
    }
  }

  static bool& ends(operation& one) noexcept { return reads(one) ? one.at->reader_ends : one.at->writer_ends; }

  // Under the slot's mutex, the operation in the ring.
  void ask_for_end(operation& one) noexcept {
    ends(one) = true;
    std::lock_guard lock(submissions_);
    io_uring_sqe& entry = next_entry();
    io_uring_prep_cancel(&entry, &one, 0);
    entry.user_data = cancellation;
    give(publish(), 0);
  }

  void finish(operation& one, int result, unsigned flags) noexcept {
    slot& at = *one.at;
    bool last = false;
    {
      std::unique_lock lock(at.mutex);
      receive_lease(one, result, flags);
      if (result == -EAGAIN && is_of_file(one.what)) {  // some file systems know no other way
        if (!ends(one)) {
          one.aside = true;
          lock.unlock();
          return hand_aside(at);
        }
        result = -ECANCELED;
      }
      if (!take(at, one, result)) return push(one);
      operation_queue& queue = queue_of(one);
      queue.remove(one);
      ends(one) = false;
      one.pending = false;
      if (queue.front() != nullptr) push(*queue.front());
      last = at.closing && at.readers.empty() && at.writers.empty();
    }
    complete(one);
    if (last) free_slot(at);
  }

  // The buffer that the system has chosen. A socket of which it does not say so has nothing more: it need not be tried first.
  void receive_lease(operation& one, int result, unsigned flags) noexcept {
    if (one.what == action::read) one.at->can_read = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    if ((flags & IORING_CQE_F_BUFFER) == 0) return;
    std::byte* const came = leases().taken(flags >> IORING_CQE_BUFFER_SHIFT);
    if (result > 0) {
      one.data = came;
    } else {
      buffers->give(came);
    }
  }

  // What the ring says of an operation. False when it is to be asked once more. Who asked for its end meanwhile was not heard
  // by the system: so that is heard here.
  bool take(slot& at, operation& one, int result) noexcept {
    if (is_over(at, one, result)) return true;
    if (!at.closing && !ends(one)) return false;
    one.result = -ECANCELED;
    return true;
  }

  bool is_over(slot& at, operation& one, int result) noexcept {
    one.result = result;
    if (one.what == action::close && result == -EINTR) return one.result = 0, true;  // its descriptor is gone
    // No buffer is in the ring just now, whether or not something has come: so first it waits for that.
    if (result == -ENOBUFS && one.leased && !one.begun) return one.begun = true, false;
    // The system cancels by itself what a thread submitted that ends; another one asks again.
    if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) return false;
    if (one.what == action::accept && result == -ECONNABORTED) return false;
    if (result <= 0 || one.what == action::accept || one.what == action::open) return true;
    if (is_polled(one)) return !at.closing && attempt(calls, at, one);
    one.done += static_cast<std::size_t>(result);
    return !one.whole || one.done == one.bytes;
  }

  // The ring only tells when it is ready.
  bool is_polled(const operation& one) const noexcept {
    switch (one.what) {
      case action::accept:
      case action::connect:
      case action::open:
      case action::read_at:
      case action::write_at:
      case action::sync:
      case action::close: return false;
      case action::read: return !one.socket || (one.leased && (one.begun || !provides_));
      case action::write: return !one.socket;
      default: return true;
    }
  }

  io_uring ring_{};
  std::mutex submissions_;
  bool somebody_sleeps_ = false;
  bool rung_ = false;  // inside the door: U3
  bool provides_ = false;  // the system takes buffers of the ring's
};

}  // namespace

void set_uring_entries(unsigned submissions, unsigned completions, unsigned leases) noexcept {
  submission_entries = submissions;
  completion_entries = completions;
  buffer_entries = leases;
}

std::shared_ptr<reactor> make_uring_reactor(kernel& calls, runtime_services of, int& refused) {
  try {
    return std::make_shared<uring_reactor>(calls, std::move(of));
  } catch (const io_error& e) {
    refused = e.code().value();
    return nullptr;
  }
}

}  // namespace troupe::io

#else

#include <cerrno>

namespace troupe::io {

void set_uring_entries(unsigned, unsigned, unsigned) noexcept {}

std::shared_ptr<reactor> make_uring_reactor(kernel&, runtime_services, int& refused) {
  refused = ENOSYS;
  return nullptr;
}

}  // namespace troupe::io

#endif
