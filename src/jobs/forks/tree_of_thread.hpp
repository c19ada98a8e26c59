// tree_of_thread: a tree of forks whose end a thread waits for. It helps meanwhile: with that tree,
// and what is within it.
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/jobs/fork_frame.hpp"

namespace troupe::jobs {

// Workers, and the calling thread if it is none.
unsigned threads_of(const job_pool* pool) noexcept;

struct tree_of_thread : fork_tree {
  // The calling thread is the one that waits.
  // throws std::bad_alloc at a thread's first call
  tree_of_thread(fork_join& top, job_pool* system, unsigned takes_part);
  static void tell(fork_tree& base) noexcept;
  // order: acquire  sees what the parts did; pairs with tell
  bool done() const noexcept { return told.load(std::memory_order_acquire); }
  std::atomic<bool> told{false};
};

// What a thread had when it came lies under this; what it pushes then, above.
class bottom {
 public:
  explicit bottom(const fork_deques& of) noexcept
      : forks_(of.forks.mark()), loops_(of.loops.mark()) {}
  // The newest above it.
  fork_frame* pop(fork_deques& of) const noexcept {
    fork_frame* const one = of.forks.mark() > forks_ ? of.forks.pop() : nullptr;
    return one != nullptr || of.loops.mark() <= loops_ ? one : of.loops.pop();
  }

 private:
  const std::int64_t forks_, loops_;
};

// Takes part in this tree, and in nothing else, until it has ended: what lies under it on this
// stack may wait for the tree, and so never for what is put on top.
void help(tree_of_thread& tree, fork_deques& deques, const bottom& under) noexcept;

}  // namespace troupe::jobs
