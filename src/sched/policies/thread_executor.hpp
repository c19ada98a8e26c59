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
#include "sched/wake_descriptor.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched {

class thread_executor : public executor {
 public:
  // `wakes`: rung while the thread sleeps elsewhere; null if it never does.
  thread_executor(outstanding_work& alive, runtime_host& host,
                  wake_descriptor* wakes = nullptr) noexcept
      : alive_(alive), runtime_(host), wakes_(wakes) {}

  void submit(runnable& item) noexcept override;

  // Runs the oldest runnable for one turn. False when there was none.
  bool run_one();

  void discard_all() noexcept;

  // Sleeps until something was submitted or poke() was called since the last wait.
  void wait() noexcept {
    const observe::parked parked_scope;
    parker_.wait();
  }
  bool wait_for(std::chrono::nanoseconds limit) noexcept {
    const observe::parked parked_scope;
    return parker_.wait_for(limit);
  }
  void poke() noexcept {
    if (parker_.notify()) wakes_->ring();
  }

  // The thread leaves its queue for a loop of its own, in which the descriptor may wake it; from
  // then on each submit() and poke() makes the descriptor readable. It does so itself if something
  // is left to do.
  void begin_wait_elsewhere() noexcept;
  // The thread is back. If it was notified meanwhile, its next wait returns at once.
  void end_wait_elsewhere() noexcept;

 private:
  runnable* pop() noexcept;
  void finished() noexcept;

  outstanding_work& alive_;
  runtime_host& runtime_;
  wake_descriptor* const wakes_;
  inbox<runnable> inbox_;
  base::parker parker_;
  runnable_queue queue_;  // the owner's
};

}  // namespace troupe::sched
