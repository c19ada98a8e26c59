#include "jobs/forks/thread_fork_tree.hpp"

#include "base/thread_name.hpp"
#include "jobs/pool/job_pool.hpp"
#include "jobs/waits/waiting_threads.hpp"

namespace troupe::jobs {

unsigned threads_of(const job_pool* pool) noexcept {
  return pool == nullptr || !pool->shares() ? 1
                                            : pool->workers() + (base::worker_number == 0 ? 1 : 0);
}

thread_fork_tree::thread_fork_tree(fork_join& top, job_pool* pool, unsigned takes_part)
    : fork_tree(top, pool, takes_part, &tell) {
  sleeper = &this_thread();
}

void thread_fork_tree::tell(fork_tree& base) noexcept {
  auto& self = static_cast<thread_fork_tree&>(base);
  waiting_thread& waits = *self.sleeper;
  // order: release  publishes the effects of the parts; the last touch
  self.woken.store(true, std::memory_order_release);
  waits.parker.notify();
}

namespace {

// Sleeps until the tree ends, or another thread asks this one to take part.
void sleep(thread_fork_tree& tree) noexcept {
  const waits_for wait(tree, tree.woken);
  if (!tree.done()) tree.sleeper->parker.wait();
}

}  // namespace

void help(thread_fork_tree& tree, fork_deques& deques, const deque_mark& under) noexcept {
  fork_worker_state worker(tree.pool, deques, false);
  bool wants_work = false;
  const auto say = [&](bool so) {
    wants_work = so;
    tree.wants_work.store(so, std::memory_order_relaxed);  // order: relaxed  its fence is below
  };
  while (!tree.done()) {
    fork_frame* part = under.pop(deques);
    if (part == nullptr && tree.pool != nullptr) part = tree.pool->steal_part(deques, &tree);
    if (part != nullptr) {
      if (wants_work) say(false);
      worker.run(*part);
    } else if (!wants_work) {
      if (tree.pool != nullptr) tree.pool->count_call(true);
      say(true);
      // order: seq_cst  a thread that pushed a part and did not see the flag is seen by one more
      // search; pairs with offer
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      if (tree.pool != nullptr) tree.pool->attend();
      sleep(tree);
      say(false);
    }
  }
}

}  // namespace troupe::jobs
