// waiting_thread: a thread that waits for a job or a fork, and the frames on its stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/parker.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/jobs/job.hpp"
#include "troupe/jobs/shared_loop.hpp"

namespace troupe::jobs {

struct waiting_thread;

// A job that this thread is running, or fork frames of a tree. Lies on the thread's stack as long
// as they do.
class frame {
 public:
  TROUPE_INLINE explicit frame(job& runs) noexcept;
  explicit frame(fork_tree& works_at) noexcept;
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;
  TROUPE_INLINE ~frame();

  const job* const runs;  // null: then `forks` is set
  fork_tree* const forks;
  const frame* const below;
  const frame* const forks_below;  // the next frame with forks, starting at this one
};

TROUPE_INLINE frame::frame(job& item) noexcept
    : runs(&item),
      forks(nullptr),
      below(this_stack.top),
      forks_below(below == nullptr ? nullptr : below->forks_below) {
  this_stack.top = this;
}
inline frame::frame(fork_tree& works_at) noexcept
    : runs(nullptr), forks(&works_at), below(this_stack.top), forks_below(this) {
  this_stack.top = this;
}
TROUPE_INLINE frame::~frame() { this_stack.top = below; }

// Never freed, but used again by another thread: a search for a deadlock may look at a thread whose
// job has just ended.
struct waiting_thread {
  base::parker parker;
  // its job or fork waits for the thread itself; `chain` names the cycle
  std::atomic<bool> refused{false};

  // Guarded by the mutex.
  struct place {
    const job* awaited = nullptr;              // the job that it waits for
    const fork_tree* all = nullptr;            // or the tree whose fork frames it waits for
    const std::atomic<bool>* ended = nullptr;  // the tree's flag
    const frame* top = nullptr;                // of its stack, which does not change while it waits
    bool may_refuse = false;
    // the last search for cycles of actors and threads that saw this wait
    std::uint32_t seen_in = 0;
  } at;
  std::string chain;
  base::list_link<waiting_thread> link;  // of the waiting threads
  std::uint64_t reached_in = 0;  // the last search that reached this thread, and from which thread
  waiting_thread* reached_from = nullptr;
  waiting_thread* next_reached = nullptr;
  waiting_thread* next_free = nullptr;
};
using waiting_thread_list = base::intrusive_list<waiting_thread, &waiting_thread::link>;

}  // namespace troupe::jobs
