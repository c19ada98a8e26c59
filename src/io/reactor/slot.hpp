// slot: what a reactor knows of one open descriptor.
//
// Its memory is the reactor's and stays a slot for as long as that lives, so that an event or a
// cancellation which comes late finds a slot, sees by the generation or the operation's own state
// that it is another one's by now, and does nothing. Threads: any; the mutex guards all but what
// the reactor's list of free slots uses. Invariants
//   S1  an operation is pending if and only if the backend has it: in a list here, or in the
//   kernel. Only under the mutex
//       of its slot that changes.
//   S2  while an operation is pending its slot stays in use.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <new>

#include "base/small_mutex.hpp"
#include "io/buffers/lease_queue.hpp"
#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

class reactor;

// Operations of one direction, in the order in which they came: a ring, which is known by its last
// one.
class operation_queue {
 public:
  bool empty() const noexcept { return last_ == nullptr; }
  operation* front() const noexcept { return last_ == nullptr ? nullptr : last_->next; }
  operation* behind(operation& one) const noexcept { return &one == last_ ? nullptr : one.next; }
  void push(operation& one) noexcept {
    operation& before = last_ == nullptr ? one : *last_;
    one.next = last_ == nullptr ? &one : last_->next;
    before.next = &one;
    last_ = &one;
  }
  void push_front(operation& one) noexcept {
    operation* const last = last_;
    push(one);
    if (last != nullptr) last_ = last;
  }
  // At once for the first one; there is seldom another.
  void remove(operation& one) noexcept {
    operation* before = last_;
    while (before->next != &one) before = before->next;
    before->next = one.next;
    if (last_ == &one) last_ = before == &one ? nullptr : before;
  }

 private:
  operation* last_ = nullptr;
};

// What a slot that shoots has come to.
struct shots {
  std::uint16_t count = 0;  // how many came that nobody has asked for yet; these:
  lease_queue leases;
  std::deque<int> accepted;
  int last = none;  // how it ended, when nobody has been told: 0, or -errno
  static constexpr int none = 1;
  // False when there is no memory for that.
  bool keep(int connection) noexcept {
    try {
      accepted.push_back(connection);
      ++count;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
};

struct alignas(16) slot {
  base::small_mutex mutex;
  int fd = -1;
  reactor* owner = nullptr;  // it lives while one of its slots is in use
  // watchers: those that wait for the peer's end (action::ended)
  operation_queue readers, writers, watchers;
  slot* next_free = nullptr;
  std::uint16_t generation = 0;
  bool borrowed = false;    // the descriptor is somebody else's: it is not closed here
  bool registered = false;  // the reactor's set tells of it
  bool duplicated = false;  // `fd` is a duplicate of ours, made for that
  // What is known: false only after the system said so, until it tells of a change.
  bool can_read = true, can_write = true;
  // the first of the queue was asked for its end
  bool reader_ends = false, writer_ends = false, watcher_ends = false;
  bool rest_comes = false;  // of a write that was begun at once: no other one is tried before it
  bool closing = false;     // goes when what the system still has has completed
  bool hung_up = false;     // the peer has closed, or it has an error: no edge comes after that
  // Over io_uring: the ring gives connections, or leased buffers, without being asked for each one
  // (multishot).
  bool shoots = false;          // until it says that it ends that
  bool shots_end = false;       // it was asked to
  bool floods = false;          // more had come than the last read took
  bool listens = false;         // it gives connections
  std::unique_ptr<shots> came;  // since it has shot for the first time
};

}  // namespace troupe::io
