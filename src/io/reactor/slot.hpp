// slot: a reactor's state of one open descriptor.
//
// The reactor owns the memory of its slots, and that memory stays a slot for as long as the reactor
// lives. A late event or cancellation therefore still finds a slot. The generation or the
// operation's own state shows that the slot belongs to another descriptor by now, and nothing
// happens.
//
// Threads: any. The mutex guards everything but `next_free`, which the reactor's list of free slots
// uses.
// Invariants
//   S1  an operation is pending if and only if the backend has it, in a list of its slot or in the
//       kernel. That changes only under the mutex of the slot.
//   S2  while an operation is pending, its slot stays in use.
#pragma once

#include <cstdint>
#include <memory>

#include "io/buffers/kept_input.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

class reactor;

// The operations of one direction, in the order in which they came. A circular list, of which only
// the last element is kept.
class operation_queue {
 public:
  bool empty() const noexcept { return last_ == nullptr; }
  operation* front() const noexcept { return last_ == nullptr ? nullptr : last_->next; }
  operation* behind(const operation& operation) const noexcept {
    return &operation == last_ ? nullptr : operation.next;
  }
  void push(operation& added) noexcept {
    operation& before = last_ == nullptr ? added : *last_;
    added.next = last_ == nullptr ? &added : last_->next;
    before.next = &added;
    last_ = &added;
  }
  void push_front(operation& started) noexcept {
    operation* const last = last_;
    push(started);
    if (last != nullptr) last_ = last;
  }
  // Takes constant time for the first operation. A slot seldom has a second one.
  void remove(operation& removed) noexcept {
    operation* before = last_;
    while (before->next != &removed) before = before->next;
    before->next = removed.next;
    if (last_ == &removed) last_ = before == &removed ? nullptr : before;
  }

 private:
  operation* last_ = nullptr;
};

// One line of the cache, so that threads that use neighbours do not slow each other down.
struct alignas(64) slot {
  base::small_mutex mutex;
  int fd = -1;
  reactor* owner = nullptr;  // lives while one of its slots is in use
  // `watchers`: operations that wait for the peer's end (action::ended).
  operation_queue readers, writers, watchers;
  std::unique_ptr<kept_input> kept;  // null for most
  slot* next_free = nullptr;
  std::uint16_t generation = 0;
  // False only after a call that would have blocked, until the system reports a change.
  bool can_read = true, can_write = true;
  // The first operation of the queue was asked to end.
  bool reader_ends = false, writer_ends = false, watcher_ends = false;
  bool borrowed : 1 = false;    // other code owns the descriptor: close() does not close it
  bool registered : 1 = false;  // the reactor's epoll set reports on it
  bool duplicated : 1 = false;  // `fd` is our own duplicate, made for the epoll set
  // the rest of a write_at_once() is due: no other write is tried before it
  bool rest_comes : 1 = false;
  // closed; becomes free when the operations in the kernel have completed
  bool closing : 1 = false;
  bool hung_up : 1 = false;      // the peer has closed, or the socket has an error: no edge follows
  bool reads_ahead : 1 = false;  // a read of a read_ahead was begun, and not destroyed
};
static_assert(sizeof(slot) == 64);

}  // namespace troupe::io
