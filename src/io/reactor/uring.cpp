// The backend over io_uring, with one ring.
//
// Transfers over sockets, accept and connect are operations of the ring. Every other operation
// waits in the ring until it is ready, and is then tried (attempt.hpp). One operation of a slot and
// direction is in the ring at a time; the others queue in the slot.
// Rejected: one request for many results (multishot), see docs/decisions/fewer_forms.md.
// Invariant
//   U2  the first operation of a slot's queue is in the ring, and no other. Only its completion, or
//       abandon(), moves the queue.
#include "io/reactor/make_reactor.hpp"

#if TROUPE_HAS_LIBURING

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "io/buffers/buffer_ring.hpp"
#include "io/kernel/attempt_file.hpp"
#include "io/reactor/attempt.hpp"
#include "io/reactor/reactor.hpp"
#include "io/reactor/ring_entries.hpp"
#include "io/reactor/ring_queues.hpp"
#include "troupe/io/error.hpp"

namespace troupe::io {
namespace {

unsigned submission_entries = 256, completion_entries = 4096, buffer_entries = 256;

class uring_reactor final : public reactor {
 public:
  uring_reactor(kernel& calls, sched::runtime_host& of)
      : reactor(calls, of, buffer_pool_ptr(new buffer_ring(buffer_entries))),
        queues_(calls, submission_entries, completion_entries),
        provides_(leases().open(queues_.ring())) {}

  bool start(operation& one) noexcept override {
    slot& at = *one.at;
    if (is_of_file(one.what) && try_file(one)) return true;
    if (one.what == action::status) return start_aside(one), false;
    std::lock_guard lock(at.mutex);
    operation_queue& queue = queue_of(one);
    const bool first = queue.empty();
    if (first && (one.what == action::send_file || one.what == action::ended) &&
        attempt(calls, at, one))
      return true;
    one.pending = true;
    enter(one);
    queue.push(one);
    if (first) push(one);
    return false;
  }

  // The kernel is asked while the slot's mutex keeps the operation from completing. So the request
  // cannot hit a later operation at the same address.
  void cancel(operation& one) noexcept override {
    {
      slot& at = *one.at;
      std::lock_guard lock(at.mutex);
      if (!one.pending || (one.aside && one.begun)) return;
      if (queue_of(one).front() == &one && !one.aside) return ask_for_end(one);
      queue_of(one).remove(one);
      one.pending = false;
      one.result = -ECANCELED;
    }
    complete(one);
  }

  bool poll(sched::fetched_events& events, bool) noexcept override {
    return queues_.poll() && fetch(events);
  }
  bool wait(sched::fetched_events& events,
            const std::chrono::nanoseconds* limit) noexcept override {
    return queues_.wait(limit) && fetch(events);
  }
  void wake() noexcept override { queues_.wake(); }
  void serve(sched::fetched_events& events) noexcept override {
    sched::io_event event;
    while (events.take(event))
      finish(*reinterpret_cast<operation*>(event.mark), event.result, event.flags);
  }

 protected:
  bool abandon(slot& at, operation_queue& ended) noexcept override {
    for (operation_queue* queue : {&at.readers, &at.writers, &at.watchers}) {
      operation* const first = queue->front();
      if (first == nullptr) continue;
      ask_for_end(*first);
      at.closing = true;
      while (operation* one = queue->behind(*first)) end(*queue, *one, -ECANCELED, ended);
    }
    return !at.closing;
  }

 private:
  bool fetch(sched::fetched_events& events) noexcept {
    auto& storage = events.storage();
    unsigned fetched = 0;
    queues_.take_some(sched::fetched_events::room,
                      [&](std::uint64_t mark, int result, unsigned flags) {
                        storage[fetched++] = {mark, result, flags};
                      });
    if (fetched != 0) events.publish(fetched);
    return fetched != 0;
  }

  buffer_ring& leases() const noexcept { return static_cast<buffer_ring&>(*buffers); }
  // The caller of all of these holds the slot's mutex.

  static void end(operation_queue& queue, operation& one, int result,
                  operation_queue& ended) noexcept {
    queue.remove(one);
    one.pending = false;
    one.result = result;
    ended.push(one);
  }

  void push(operation& one) noexcept {
    queues_.add(reinterpret_cast<std::uint64_t>(&one),
                [&](io_uring_sqe& entry) { prepare(entry, one); });
  }

  void prepare(io_uring_sqe& entry, operation& one) const noexcept {
    const int fd = one.at->fd;
    const int flags = one.whole ? MSG_WAITALL : 0;
    // An entry of the ring has 32 bits for the length.
    const std::size_t bytes = std::min(one.bytes - one.done, step_bytes_max);
    if (is_of_file(one.what)) {
      prepare_of_file(entry, one);
    } else if (is_polled(one)) {
      const bool watches = one.what == action::ended;
      io_uring_prep_poll_add(&entry, fd,
                             watches      ? static_cast<unsigned>(one.extra)
                             : reads(one) ? POLLIN
                                          : POLLOUT);
    } else if (one.what == action::read && one.leased) {
      prepare_lease(entry, *one.at);
    } else if (one.what == action::read) {
      io_uring_prep_recv(&entry, fd, one.data + one.done, bytes, flags);
      if (provides_ && !one.at->can_read) entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    } else if (one.what == action::write) {
      io_uring_prep_send(&entry, fd, one.data + one.done, bytes, flags | MSG_NOSIGNAL);
    } else if (one.what == action::accept) {
      io_uring_prep_accept(&entry, fd, one.address,
                           one.address == nullptr ? nullptr : &one.address_bytes,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    } else {
      io_uring_prep_connect(&entry, fd, one.address, one.address_bytes);
    }
  }

  static bool& ends(operation& one) noexcept {
    if (reads(one)) return one.at->reader_ends;
    return one.what == action::ended ? one.at->watcher_ends : one.at->writer_ends;
  }

  // The operation is in the ring.
  void ask_for_end(operation& one) noexcept {
    ends(one) = true;
    queues_.submit(ring_queues::unheard,
                   [&one](io_uring_sqe& entry) { io_uring_prep_cancel(&entry, &one, 0); });
  }

  // The functions below are called when a completion has come, without a mutex held.

  void complete_all(operation_queue& ended) noexcept {
    while (operation* one = ended.front()) {
      ended.remove(*one);
      complete(*one);
    }
  }

  void finish(operation& one, int result, unsigned flags) noexcept {
    slot& at = *one.at;
    operation_queue ended;
    bool last = false;
    {
      std::unique_lock lock(at.mutex);
      receive_lease(one, result, flags);
      // Some file systems cannot do this operation in the ring.
      if (result == -EAGAIN && is_of_file(one.what) && one.what != action::close) {
        if (!ends(one)) {
          one.aside = true;
          lock.unlock();
          return hand_aside(at);
        }
        result = -ECANCELED;
      }
      if (!take(at, one, result)) return push(one);
      operation_queue& queue = queue_of(one);
      ends(one) = false;
      end(queue, one, one.result, ended);
      if (operation* const next = queue.front()) push(*next);
      last = at.closing && at.readers.empty() && at.writers.empty() && at.watchers.empty();
    }
    complete_all(ended);
    if (last) free_slot(at);
  }

  // Takes the buffer that the system has chosen. If the system does not say that the socket has
  // more bytes, the next read need not try before it waits.
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

  // Applies what the ring says about an operation. Returns false when the operation has to be
  // submitted again. A request to end the operation may have come while it was not in the ring:
  // then the kernel did not see that request, so it is obeyed here.
  bool take(slot& at, operation& one, int result) noexcept {
    if (is_over(at, one, result)) return true;
    if (!at.closing && !ends(one)) return false;
    one.result = -ECANCELED;
    return true;
  }

  bool is_over(slot& at, operation& one, int result) noexcept {
    one.result = result;
    // Whatever the system says, the descriptor is closed, and its number may already be used again.
    if (one.what == action::close && result != -ECANCELED)
      return one.result = result == -EINTR ? 0 : result, true;
    // The ring has no buffer at this moment, whether or not bytes have come. So the operation first
    // waits until there is something to read.
    if (result == -ENOBUFS && one.leased && !one.begun) return one.begun = true, false;
    // The system cancels what a thread has submitted when that thread ends. Then it is submitted
    // again.
    if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) return false;
    if (one.what == action::accept && is_of_the_peer(result)) return false;
    if (result <= 0 || one.what == action::accept || one.what == action::open) return true;
    if (is_polled(one)) return !at.closing && attempt(calls, at, one);
    one.done += static_cast<std::size_t>(result);
    return !one.whole || one.done == one.bytes;
  }

  bool is_polled(const operation& one) const noexcept { return io::is_polled(one, provides_); }

  ring_queues queues_;
  const bool provides_;  // the system can take buffers from the ring of buffers
};

}  // namespace

void set_uring_entries(unsigned submissions, unsigned completions, unsigned leases) noexcept {
  submission_entries = submissions;
  completion_entries = completions;
  buffer_entries = leases;
}

std::shared_ptr<reactor> make_uring_reactor(kernel& calls, sched::runtime_host& of, int& refused) {
  try {
    return std::make_shared<uring_reactor>(calls, of);
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

std::shared_ptr<reactor> make_uring_reactor(kernel&, sched::runtime_host&, int& refused) {
  refused = ENOSYS;
  return nullptr;
}

}  // namespace troupe::io

#endif
