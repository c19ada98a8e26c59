// shared_queue: the plain reference policy: one queue behind one mutex for all workers.
//
// Simple enough to be seen right; every turn costs two locks. The conformance suite checks that the
// other policies behave like this one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "sched/executor.hpp"
#include "sched/outstanding_work.hpp"
#include "sched/poller.hpp"
#include "sched/runnable_queue.hpp"
#include "sched/runtime_host.hpp"

namespace troupe::sched {

class shared_queue final : public policy {
 public:
  shared_queue(unsigned workers, outstanding_work& alive, runtime_host& host);
  ~shared_queue() override;

  void submit(runnable& item) noexcept override;
  void shut_down() override;
  std::vector<counters> count() const override;
  std::size_t queued() const override;
  unsigned workers() const noexcept override { return static_cast<unsigned>(threads_.size()); }
  void attach(poller& io) override;

 private:
  shared_queue(outstanding_work& alive, runtime_host& host);
  void work();
  void put(runnable& item) noexcept;

  outstanding_work& alive_;
  runtime_host& runtime_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  runnable_queue queue_;
  unsigned asleep_ = 0;
  bool ending_ = false;
  std::vector<counters> counters_;  // one for each worker; guarded by the mutex
  std::vector<std::thread> threads_;
  poller* io_ = nullptr;
  std::thread io_thread_;  // sleeps in the poller
};

}  // namespace troupe::sched
