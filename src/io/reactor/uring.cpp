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

#include "base/invariant.hpp"
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
  uring_reactor(kernel& calls, sched::runtime_host& host)
      : reactor(calls, host, buffer_pool_ptr(new buffer_ring(buffer_entries))),
        queues_(calls, submission_entries, completion_entries),
        provides_(leases().open(queues_.ring())) {}

  bool start(operation& operation) noexcept override {
    slot& at = *operation.at;
    if (is_of_file(operation.opcode) && try_file(operation)) return true;
    if (operation.opcode == action::status) return start_aside(operation), false;
    std::lock_guard lock(at.mutex);
    operation_queue& queue = queue_of(operation);
    const bool first = queue.empty();
    if (first && (operation.opcode == action::send_file || operation.opcode == action::ended) &&
        attempt(calls, at, operation))
      return true;
    operation.pending = true;
    enter(operation);
    queue.push(operation);
    if (first) push(operation);
    return false;
  }

  // The kernel is asked while the slot's mutex keeps the operation from completing. The request
  // therefore cannot hit a later operation at the same address.
  void cancel(operation& operation) noexcept override {
    {
      slot& at = *operation.at;
      std::lock_guard lock(at.mutex);
      if (!operation.pending || (operation.aside && operation.begun)) return;
      if (queue_of(operation).front() == &operation && !operation.aside)
        return ask_for_end(operation);
      queue_of(operation).remove(operation);
      operation.pending = false;
      operation.result = -ECANCELED;
    }
    complete(operation);
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
      while (operation* operation = queue->behind(*first))
        end(*queue, *operation, -ECANCELED, ended);
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

  static void end(operation_queue& queue, operation& operation, int result,
                  operation_queue& ended) noexcept {
    TROUPE_INVARIANT(operation.pending, "S1");
    queue.remove(operation);
    operation.pending = false;
    operation.result = result;
    ended.push(operation);
  }

  void push(operation& operation) noexcept {
    queues_.add(reinterpret_cast<std::uint64_t>(&operation),
                [&](io_uring_sqe& entry) { prepare(entry, operation); });
  }

  void prepare(io_uring_sqe& entry, operation& operation) const noexcept {
    const int fd = operation.at->fd;
    const int flags = operation.whole ? MSG_WAITALL : 0;
    // An entry of the ring has 32 bits for the length.
    const std::size_t bytes = std::min(operation.bytes - operation.done, step_bytes_max);
    if (is_of_file(operation.opcode)) {
      prepare_of_file(entry, operation);
    } else if (is_polled(operation)) {
      const bool watches = operation.opcode == action::ended;
      io_uring_prep_poll_add(&entry, fd,
                             watches            ? static_cast<unsigned>(operation.extra)
                             : reads(operation) ? POLLIN
                                                : POLLOUT);
    } else if (operation.opcode == action::read && operation.leased) {
      prepare_lease(entry, *operation.at);
    } else if (operation.opcode == action::read) {
      io_uring_prep_recv(&entry, fd, operation.data + operation.done, bytes, flags);
      if (provides_ && !operation.at->can_read) entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    } else if (operation.opcode == action::write) {
      io_uring_prep_send(&entry, fd, operation.data + operation.done, bytes, flags | MSG_NOSIGNAL);
    } else if (operation.opcode == action::accept) {
      io_uring_prep_accept(&entry, fd, operation.address,
                           operation.address == nullptr ? nullptr : &operation.address_bytes,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    } else {
      io_uring_prep_connect(&entry, fd, operation.address, operation.address_bytes);
    }
  }

  static bool& ends(operation& operation) noexcept {
    if (reads(operation)) return operation.at->reader_ends;
    return operation.opcode == action::ended ? operation.at->watcher_ends
                                             : operation.at->writer_ends;
  }

  // The operation is in the ring.
  void ask_for_end(operation& operation) noexcept {
    ends(operation) = true;
    queues_.submit(ring_queues::unheard, [&operation](io_uring_sqe& entry) {
      io_uring_prep_cancel(&entry, &operation, 0);
    });
  }

  // The functions below are called when a completion has arrived, without a mutex held.

  void complete_all(operation_queue& ended) noexcept {
    while (operation* operation = ended.front()) {
      ended.remove(*operation);
      complete(*operation);
    }
  }

  void finish(operation& finished, int result, unsigned flags) noexcept {
    slot& at = *finished.at;
    operation_queue ended;
    bool last = false;
    {
      std::unique_lock lock(at.mutex);
      receive_lease(finished, result, flags);
      // Some file systems cannot do this operation in the ring.
      if (result == -EAGAIN && is_of_file(finished.opcode) && finished.opcode != action::close) {
        if (!ends(finished)) {
          finished.aside = true;
          lock.unlock();
          return hand_aside(at);
        }
        result = -ECANCELED;
      }
      if (!take(at, finished, result)) return push(finished);
      operation_queue& queue = queue_of(finished);
      TROUPE_INVARIANT(queue.front() == &finished, "U2");
      ends(finished) = false;
      end(queue, finished, finished.result, ended);
      if (operation* const next = queue.front()) push(*next);
      last = at.closing && at.readers.empty() && at.writers.empty() && at.watchers.empty();
    }
    complete_all(ended);
    if (last) free_slot(at);
  }

  // Takes the buffer that the system has chosen. If the system does not report that the socket has
  // more bytes, the next read need not try before it waits.
  void receive_lease(operation& operation, int result, unsigned flags) noexcept {
    if (operation.opcode == action::read)
      operation.at->can_read = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    if ((flags & IORING_CQE_F_BUFFER) == 0) return;
    std::byte* const came = leases().taken(flags >> IORING_CQE_BUFFER_SHIFT);
    if (result > 0) {
      operation.data = came;
    } else {
      buffers->give(came);
    }
  }

  // Applies a result of the ring to an operation. Returns false when the operation has to be
  // submitted again. A request to end the operation may have arrived while it was not in the ring:
  // then the kernel did not see that request, and it is obeyed here.
  bool take(slot& at, operation& operation, int result) noexcept {
    if (is_over(at, operation, result)) return true;
    if (!at.closing && !ends(operation)) return false;
    operation.result = -ECANCELED;
    return true;
  }

  bool is_over(slot& at, operation& operation, int result) noexcept {
    operation.result = result;
    // Whatever the system returns, the descriptor is closed, and its number may already be used
    // again.
    if (operation.opcode == action::close && result != -ECANCELED)
      return operation.result = result == -EINTR ? 0 : result, true;
    // The ring has no buffer at this moment, whether or not bytes have arrived. The operation
    // therefore first waits until there is something to read.
    if (result == -ENOBUFS && operation.leased && !operation.begun)
      return operation.begun = true, false;
    // The system cancels a thread's operations when that thread ends. Then the operation is
    // submitted again.
    if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) return false;
    if (operation.opcode == action::accept && is_of_the_peer(result)) return false;
    if (result <= 0 || operation.opcode == action::accept || operation.opcode == action::open)
      return true;
    if (is_polled(operation)) return !at.closing && attempt(calls, at, operation);
    operation.done += static_cast<std::size_t>(result);
    return !operation.whole || operation.done == operation.bytes;
  }

  bool is_polled(const operation& operation) const noexcept {
    return io::is_polled(operation, provides_);
  }

  ring_queues queues_;
  const bool provides_;  // the system can take buffers from the ring of buffers
};

}  // namespace

void set_uring_entries(unsigned submissions, unsigned completions, unsigned leases) noexcept {
  submission_entries = submissions;
  completion_entries = completions;
  buffer_entries = leases;
}

std::shared_ptr<reactor> make_uring_reactor(kernel& calls, sched::runtime_host& host,
                                            int& refused) {
  try {
    return std::make_shared<uring_reactor>(calls, host);
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
