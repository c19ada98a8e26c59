// thread_fork_tree: a tree of forks whose end a thread waits for. Meanwhile the thread helps with
// that tree, and with the trees within it.
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/jobs/fork_frame.hpp"

namespace troupe::jobs {

// The number of threads that may take part: the workers, and the calling thread if it is none of
// them.
unsigned threads_of(const job_pool* pool) noexcept;

struct thread_fork_tree : fork_tree {
  // The calling thread is the one that waits. Throws std::bad_alloc at a thread's first call.
  thread_fork_tree(fork_join& top, job_pool* pool, unsigned takes_part);
  static void tell(fork_tree& base) noexcept;
  // order: acquire  sees the results of the parts; pairs with tell
  bool done() const noexcept { return woken.load(std::memory_order_acquire); }
  std::atomic<bool> woken{false};
};

// Marks a position in the thread's deques: earlier entries lie below it, entries that the thread
// pushes later above it.
class deque_mark {
 public:
  explicit deque_mark(const fork_deques& deques) noexcept
      : forks_(deques.forks.mark()), loops_(deques.loops.mark()) {}
  // Takes the newest frame above the mark.
  fork_frame* pop(fork_deques& deques) const noexcept {
    fork_frame* const forked = deques.forks.mark() > forks_ ? deques.forks.pop() : nullptr;
    return forked != nullptr || deques.loops.mark() <= loops_ ? forked : deques.loops.pop();
  }

 private:
  const std::int64_t forks_, loops_;
};

// Takes part in this tree, and in no other work, until the tree has ended. Frames below on this
// stack may wait for the tree: it must therefore never have to wait for other work put on top.
void help(thread_fork_tree& tree, fork_deques& deques, const deque_mark& under) noexcept;

}  // namespace troupe::jobs
