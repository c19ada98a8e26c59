// thread_executor: a queue for one thread: a pinned one, or the main thread.
//
// Submitters: any thread; each pays a compare-and-swap, and a system call when the thread sleeps. A
// submitted runnable is part of the count of outstanding work until its turns have ended.
// Owner: the one thread that calls run_one, wait and discard_all.
#pragma once

#include <atomic>

#include "base/parker.hpp"
#include "sched/executor.hpp"
#include "sched/inbox.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/runnable_queue.hpp"
#include "sched/runtime_host.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched {

class thread_executor : public executor {
 public:
  thread_executor(outstanding_work& alive, runtime_host& of) noexcept
      : alive_(alive), runtime_(of) {}

  void submit(runnable& item) noexcept override;

  // Runs the oldest runnable for one turn. False when there was none.
  bool run_one();

  void discard_all() noexcept;

  // Sleeps until something was submitted or poke() was called since the last wait.
  void wait() noexcept {
    const observe::parked here;
    parker_.wait();
  }
  bool wait_for(std::chrono::nanoseconds limit) noexcept {
    const observe::parked here;
    return parker_.wait_for(limit);
  }
  void poke() noexcept { parker_.notify(); }

 private:
  runnable* pop() noexcept;
  void finished() noexcept;

  outstanding_work& alive_;
  runtime_host& runtime_;
  inbox<runnable> inbox_;
  base::parker parker_;
  runnable_queue queue_;  // the owner's
};

}  // namespace troupe::sched
